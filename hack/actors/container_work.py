"""The work of a container, derived from its command line, and the fields that it requires of its Pod."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.scenario import Durations
    from upgrade_manager.kube.objects import Object

_SUC_PLAN_LABEL = "upgrade.cattle.io/plan"


class Work(StrEnum):
    """The commands of the toolkit image; a scenario's faults name these values."""

    CHECKSUMS = "checksums"
    PREPARE = "prepare"
    SURVEY = "survey"
    PRE_DRAIN = "pre-drain"
    POST_DRAIN = "post-drain"
    SINGLE_NODE = "single-node-upgrade"
    MANIFESTS = "manifests"
    RESTORE_VM = "restore-vm"
    IMAGE_CLEANUP = "image-cleanup"
    AGENT_HOLD = "agent-hold"
    AGENT_RELEASE = "agent-release"
    SKIP_ON = "skip-on"
    SKIP_OFF = "skip-off"
    OTHER = "other"

    @property
    def is_node_work(self) -> bool:
        """Report whether it changes its host."""
        return self in {Work.PREPARE, Work.PRE_DRAIN, Work.POST_DRAIN, Work.SINGLE_NODE}

    @property
    def is_host_script(self) -> bool:
        """Report whether it is a short shell script on the host."""
        return self in {Work.AGENT_HOLD, Work.AGENT_RELEASE, Work.SKIP_ON, Work.SKIP_OFF}


#: The work of scripts on hosts, by a program and a file that they name.
_SCRIPTS = {
    ("mkdir", "10-harvester-upgrade.env"): Work.AGENT_HOLD,
    ("rmdir", "10-harvester-upgrade.env"): Work.AGENT_RELEASE,
    ("mv", "rke2-multus.yaml.skip"): Work.SKIP_ON,
    ("rm", "rke2-multus.yaml.skip"): Work.SKIP_OFF,
}
_NODE_CALLS = {str(work): work for work in Work if work.is_node_work or work in {Work.CHECKSUMS, Work.SURVEY}}


def work_of(pod: Object) -> Work:
    """Return the work of the Pod's first container; an unknown one of a Plan is image cleanup."""
    words = _words(container_of(pod))
    names = [word.rsplit("/", 1)[-1] for word in words]
    if "upgrade_manifests.sh" in names:
        return Work.MANIFESTS
    if "upgrade_node.sh" in names:
        after = names[names.index("upgrade_node.sh") + 1 :]
        return _NODE_CALLS.get(after[0] if after else "", Work.OTHER)
    if "restore-vm" in names:
        return Work.RESTORE_VM
    if names == ["true"]:
        return Work.OTHER
    script = next((work for (program, file), work in _SCRIPTS.items() if program in names and file in names), None)
    if script is not None:
        return script
    return Work.IMAGE_CLEANUP if _SUC_PLAN_LABEL in objects.labels(pod) else Work.OTHER


def container_of(pod: Object) -> Object:
    """Return the first container, or an empty object."""
    containers = objects.spec(pod).get("containers") or [{}]
    first = containers[0]
    return first if isinstance(first, dict) else {}


def program_of(pod: Object) -> list[str]:
    """Return the program of the first container and its arguments: of a shell line, what it executes in the end."""
    container = container_of(pod)
    words: list[str] = [*(container.get("command") or []), *(container.get("args") or [])]
    return words[-1].rpartition("exec ")[2].split() if words[:2] == ["/bin/sh", "-c"] else words


def env_of(pod: Object) -> dict[str, str]:
    """Return the container's environment as far as the Pod defines it."""
    fields = {
        "metadata.name": objects.name(pod),
        "metadata.namespace": objects.namespace(pod),
        "metadata.uid": objects.uid(pod),
        "spec.nodeName": objects.spec(pod).get("nodeName") or "",
    }
    result: dict[str, str] = {}
    for entry in container_of(pod).get("env") or ():
        path = ((entry.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath") or ""
        result[entry["name"]] = entry.get("value") or fields.get(path, "")
    return result


def duration_of(work: Work, durations: Durations) -> float:
    """Seconds that the work takes by itself, waits for others not counted."""
    return {
        Work.CHECKSUMS: durations.checksums,
        Work.PREPARE: durations.prepare,
        Work.SURVEY: durations.survey,
        Work.PRE_DRAIN: durations.pre_drain,
        Work.POST_DRAIN: durations.post_drain,
        Work.SINGLE_NODE: durations.single_node,
        Work.MANIFESTS: durations.manifests,
        Work.RESTORE_VM: durations.restore_vm,
        Work.IMAGE_CLEANUP: durations.image_cleanup,
        Work.AGENT_HOLD: durations.host_script,
        Work.AGENT_RELEASE: durations.host_script,
        Work.SKIP_ON: durations.host_script,
        Work.SKIP_OFF: durations.host_script,
        Work.OTHER: durations.other,
    }[work]


def _words(container: Object) -> list[str]:
    given = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [word for text in given for word in text.split()]


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
    if work.is_node_work or work.is_host_script or work in {Work.SURVEY, Work.IMAGE_CLEANUP}:
        if not _sees_host(pod):
            return "CreateContainerError: the host's / is not mounted at /host"
        if not (container_of(pod).get("securityContext") or {}).get("privileged"):
            return "CreateContainerError: the container is not privileged, which a change of the host needs"
    if work is Work.CHECKSUMS:
        if not claims_of(pod):
            return "CreateContainerError: the claim with the ISO is not mounted"
        if not (container_of(pod).get("securityContext") or {}).get("privileged"):
            return "CreateContainerError: the container is not privileged, which a loop mount needs"
    if work is Work.IMAGE_CLEANUP and not container_of(pod).get("command"):
        return "CreateContainerError: the toolkit image has no default command"
    return ""


def process_of(pod: Object) -> str:
    """Return the name of the Pod's process: its container's."""
    return str(container_of(pod).get("name") or "")


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
