"""The fields that a kubelet and the toolkit image require before a Pod's containers run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.container_work import Work, container_of, env_of, work_of
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_PLAN = "HARVESTER_UPGRADEPLAN_NAME"
_NODE = "HARVESTER_UPGRADE_NODE_NAME"
_POD = "HARVESTER_UPGRADE_POD_NAME"
#: The variables that the scripts read under `set -u`.
_ENVIRONMENT = {
    Work.PREPARE: (_PLAN,),
    Work.MANIFESTS: (_PLAN,),
    Work.PRE_DRAIN: (_PLAN, _NODE),
    Work.POST_DRAIN: (_PLAN, _NODE, _POD),
    Work.SINGLE_NODE: (_PLAN, _NODE, _POD),
}


def missing_from(pod: Object) -> str:
    """Return the kubelet's reason not to start the Pod, or an empty string."""
    containers = objects.spec(pod).get("containers") or []
    if not containers:
        return "CreateContainerConfigError: the Pod has no container"
    volumes = {volume.get("name") for volume in objects.spec(pod).get("volumes") or ()}
    for container in containers:
        if not container.get("image"):
            return f"InvalidImageName: container {container.get('name')} has no image"
        for mount in container.get("volumeMounts") or ():
            if mount.get("name") not in volumes:
                return f"CreateContainerConfigError: there is no volume {mount.get('name')!r} to mount"
    return _missing_from_toolkit(pod)


def _missing_from_toolkit(pod: Object) -> str:
    work = work_of(pod)
    if work.is_node_work or work is Work.IMAGE_CLEANUP:
        if not _sees_host(pod):
            return "CreateContainerError: the host's / is not mounted at /host"
        if not (container_of(pod).get("securityContext") or {}).get("privileged"):
            return "CreateContainerError: the container is not privileged, which a change of the host needs"
    if work is Work.IMAGE_CLEANUP and not container_of(pod).get("command"):
        return "CreateContainerError: the toolkit image has no default command"
    return ""


def unset_variable(pod: Object) -> str:
    """Return the script's error for a missing variable, or an empty string."""
    environment = env_of(pod)
    for name in _ENVIRONMENT.get(work_of(pod), ()):
        if not environment.get(name):
            return f"{name}: unbound variable"
    return ""


def claims_of(pod: Object) -> list[str]:
    """Return the PersistentVolumeClaims that the Pod mounts."""
    volumes = objects.spec(pod).get("volumes") or ()
    claims = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes]
    return [claim for claim in claims if claim]


def _sees_host(pod: Object) -> bool:
    roots = {
        volume.get("name")
        for volume in objects.spec(pod).get("volumes") or ()
        if (volume.get("hostPath") or {}).get("path") == "/"
    }
    mounts = container_of(pod).get("volumeMounts") or ()
    return any(mount.get("name") in roots and mount.get("mountPath") == "/host" for mount in mounts)
