"""The Jobs that the manager starts itself: one for the cluster's components, one per node and drain hook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import (
    HARVESTER_SYSTEM,
    LABEL_JOB_TYPE,
    LABEL_NODE,
    Component,
    JobType,
)
from upgrade_manager.api.names import component_name, label_value
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.resources.environment import NODE_NAME, PLAN_NAME, POD_NAME
from upgrade_manager.resources.tolerations import tolerations

if TYPE_CHECKING:
    from upgrade_manager.resources.owner import Owner
    from upgrade_manager.resources.toolkit import ToolkitImage

#: Seconds a finished Job stays: a week, long enough to look at a failure.
KEPT = 604800
#: Kubernetes' own default of 6 lets a node that cannot succeed take over ten minutes to say so.
BACKOFF_LIMIT = 2
#: Seconds in which VMs are started again, all attempts together: the toolkit alone waits up to 30 minutes for KubeVirt.
#: The end of the upgrade waits for these Jobs, so they must have one.
RESTORE_DEADLINE = 2400
#: Jobs that end with a reboot learn their Pod's name, to reboot only after it has succeeded.
REBOOTING = frozenset({JobType.POST_DRAIN, JobType.SINGLE_NODE_UPGRADE})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """What the Jobs of one upgrade have in common."""

    image: ToolkitImage
    service_account: str


def cluster_upgrade_job(owner: Owner, settings: JobSettings) -> dict[str, Any]:
    """The Job that upgrades Rancher, Harvester and the other components of the cluster."""
    job = owner.manifest(
        JOBS,
        component_name(owner.name, Component.CLUSTER_UPGRADE),
        Component.CLUSTER_UPGRADE,
        namespace=HARVESTER_SYSTEM,
    )
    container = _container(settings, ["upgrade_manifests.sh"], [_plan_name(owner)])
    job["spec"] = _spec(job, settings, {"containers": [container]})
    return job


def node_job(
    owner: Owner, settings: JobSettings, *, node: str, job_type: JobType, suspended: bool = False
) -> dict[str, Any]:
    """The Job that does one step of the upgrade on one node, as root of the host; `suspended` until it is resumed."""
    job = _node_manifest(owner, node=node, job_type=job_type)
    env = [_plan_name(owner), {"name": NODE_NAME, "value": node}]
    if job_type in REBOOTING:
        env.append({"name": POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    container = _container(settings, ["upgrade_node.sh"], env) | {
        "args": [job_type.value],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "host-root", "mountPath": "/host"}],
    }
    pod = {
        "nodeName": node,
        "hostPID": True,
        "containers": [container],
        "volumes": [{"name": "host-root", "hostPath": {"path": "/", "type": "Directory"}}],
    }
    job["spec"] = _spec(job, settings, pod) | ({"suspend": True} if suspended else {})
    return job


def restore_job(owner: Owner, settings: JobSettings, *, node: str) -> dict[str, Any]:
    """The Job that starts the node's VMs again, through KubeVirt's API alone."""
    job = _node_manifest(owner, node=node, job_type=JobType.RESTORE_VM)
    container = _container(settings, ["upgrade-toolkit"], []) | {
        "args": ["restore-vm", "--node", node, "--upgrade", owner.name],
    }
    job["spec"] = _spec(job, settings, {"nodeName": node, "containers": [container]})
    job["spec"]["activeDeadlineSeconds"] = RESTORE_DEADLINE
    return job


def resume() -> dict[str, Any]:
    """The change that lets a suspended Job run."""
    return {"spec": {"suspend": False}}


def node_job_name(owner: Owner, *, node: str, job_type: JobType) -> str:
    """The name under which that step's Job is created once, and found again."""
    return component_name(owner.name, Component.NODE_UPGRADE, job_type=job_type, node=node)


def _node_manifest(owner: Owner, *, node: str, job_type: JobType) -> dict[str, Any]:
    return owner.manifest(
        JOBS,
        node_job_name(owner, node=node, job_type=job_type),
        Component.NODE_UPGRADE,
        namespace=HARVESTER_SYSTEM,
        labels={LABEL_NODE: label_value(node), LABEL_JOB_TYPE: job_type.value},
    )


def _spec(job: dict[str, Any], settings: JobSettings, pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "backoffLimit": BACKOFF_LIMIT,
        "ttlSecondsAfterFinished": KEPT,
        "template": {
            "metadata": {"labels": dict(job["metadata"]["labels"])},
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": settings.service_account,
                "tolerations": tolerations(),
                **pod,
            },
        },
    }


def _container(settings: JobSettings, command: list[str], env: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": "apply",
        "image": str(settings.image),
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "env": env,
        # Where the program says nothing itself, the end of its log tells why it failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _plan_name(owner: Owner) -> dict[str, Any]:
    return {"name": PLAN_NAME, "value": owner.name}
