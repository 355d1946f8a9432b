"""Jobs: one for the cluster's components, and one per node and job type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.holds import HoldPoint
from upgrade_manager.api.keys import (
    ANNOTATION_BOOT_ID,
    ANNOTATION_HOLDS,
    HARVESTER_SYSTEM,
    LABEL_JOB_TYPE,
    LABEL_NODE,
    LABEL_REPEATED,
    LABEL_REQUEST,
    Component,
    JobType,
)
from upgrade_manager.api.names import FIRST_ATTEMPT, label_value
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.resources.toolkit import (
    HOLDS,
    NODE_NAME,
    PLAN_ATTEMPT,
    PLAN_NAME,
    PLAN_UID,
    POD_NAME,
    checksums_variable,
    tolerations,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.resources.owner import Owner
    from upgrade_manager.resources.toolkit import ToolkitImage

#: Seconds for which a finished Job is kept: a week, to inspect failures.
TTL = 604800
#: With the default of 6 a failure would take more than ten minutes to show.
BACKOFF_LIMIT = 2
#: Seconds for all attempts to restart VMs; the toolkit waits up to 30 minutes for KubeVirt. The upgrade cannot end
#: before these Jobs do.
RESTORE_DEADLINE = 2400
#: Job types that reboot the node, after their Pod has succeeded; therefore they get the Pod's name.
REBOOTING = frozenset({JobType.POST_DRAIN, JobType.SINGLE_NODE_UPGRADE})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Settings shared by all Jobs of an upgrade."""

    image: ToolkitImage
    service_account: str
    #: Of the ISO's files, by path: what our toolkit checks before it uses what it downloads.
    checksums: Mapping[str, str] = field(default_factory=dict)
    #: True if the Jobs that reboot a node hold before the reboot, which our toolkit does.
    holds: bool = False


def cluster_upgrade_job(owner: Owner, settings: JobSettings) -> dict[str, Any]:
    """Build the Job that upgrades Rancher, Harvester and the other components of the cluster."""
    job = owner.manifest(
        JOBS,
        owner.name_of(Component.CLUSTER_UPGRADE),
        Component.CLUSTER_UPGRADE,
        namespace=HARVESTER_SYSTEM,
    )
    upgrade = container(
        settings, ["upgrade_manifests.sh"], [*plan_variables(owner), *checksums_variable(settings.checksums)]
    )
    job["spec"] = job_spec(job, settings, {"containers": [upgrade]})
    return job


def node_job(
    owner: Owner,
    settings: JobSettings,
    *,
    node: str,
    job_type: JobType,
    suspended: bool = False,
    repeated: bool = False,
    request: str = "",
    boot_id: str = "",
) -> dict[str, Any]:
    """Build a Job that upgrades a node, as root on the host; `repeated` marks a drain of an upgraded node.

    `request` is the request of Rancher that the Job answers; empty on a single node, which Rancher does not drain.
    `boot_id` is the node's present boot, which a Job that reboots the node records.

    A suspended Job may go with its plan; the patch that resumes it removes the ownerReference.
    """
    job = _node_manifest(owner, node=node, job_type=job_type, is_dependent=suspended)
    marks = {LABEL_REPEATED: "true" if repeated else "", LABEL_REQUEST: request}
    job["metadata"]["labels"] |= {key: value for key, value in marks.items() if value}
    env = [*plan_variables(owner), {"name": NODE_NAME, "value": node}, *checksums_variable(settings.checksums)]
    if job_type in REBOOTING:
        held = str(HoldPoint.REBOOT) if settings.holds else ""
        annotations = {ANNOTATION_BOOT_ID: boot_id, ANNOTATION_HOLDS: held}
        job["metadata"] |= _annotated({key: value for key, value in annotations.items() if value})
        env += _reboot_variables(held)
    apply = container(settings, ["upgrade_node.sh"], env) | {
        "args": [job_type.value],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "host-root", "mountPath": "/host"}],
    }
    pod = {
        "nodeName": node,
        "hostPID": True,
        "containers": [apply],
        "volumes": [{"name": "host-root", "hostPath": {"path": "/", "type": "Directory"}}],
    }
    job["spec"] = job_spec(job, settings, pod) | ({"suspend": True} if suspended else {})
    return job


def _annotated(annotations: dict[str, str]) -> dict[str, Any]:
    return {"annotations": annotations} if annotations else {}


def _reboot_variables(held: str) -> list[dict[str, Any]]:
    """Return the variables of a Job that reboots its node; our toolkit waits for its Pod, and may hold before."""
    pod = {"name": POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return [*([{"name": HOLDS, "value": held}] if held else []), pod]


def restore_job(
    owner: Owner, settings: JobSettings, *, node: str, request: str = "", has_left: bool = False
) -> dict[str, Any]:
    """Build the Job that restarts the VMs that were shut down for that request, through the KubeVirt API.

    It runs on the node; if that `has_left` for good, on any node.
    """
    job = _node_manifest(owner, node=node, job_type=JobType.RESTORE_VM)
    job["metadata"]["labels"] |= {LABEL_REQUEST: request} if request else {}
    restore = container(settings, ["upgrade-toolkit"], _identity(owner)) | {
        "args": ["restore-vm", "--node", node, "--upgrade", owner.name],
    }
    place = {} if has_left else {"nodeName": node}
    job["spec"] = job_spec(job, settings, {**place, "containers": [restore]})
    job["spec"]["activeDeadlineSeconds"] = RESTORE_DEADLINE
    return job


def node_job_name(owner: Owner, *, node: str, job_type: JobType) -> str:
    """Return the name of a node's Job."""
    return owner.name_of(Component.NODE_UPGRADE, job_type=job_type, node=node)


def _node_manifest(owner: Owner, *, node: str, job_type: JobType, is_dependent: bool = False) -> dict[str, Any]:
    return owner.manifest(
        JOBS,
        node_job_name(owner, node=node, job_type=job_type),
        Component.NODE_UPGRADE,
        namespace=HARVESTER_SYSTEM,
        labels={LABEL_NODE: label_value(node), LABEL_JOB_TYPE: job_type.value},
        is_dependent=is_dependent,
    )


def job_spec(job: dict[str, Any], settings: JobSettings, pod: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job; `pod` are the fields of its Pods that other Jobs' do not have."""
    return {
        "backoffLimit": BACKOFF_LIMIT,
        "ttlSecondsAfterFinished": TTL,
        "template": {
            "metadata": {"labels": dict(job["metadata"]["labels"])},
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": settings.service_account,
                # The names of Services become variables, which could change a program's. A SUC Plan has no such field.
                "enableServiceLinks": False,
                "tolerations": tolerations(),
                **pod,
            },
        },
    }


def container(settings: JobSettings, command: list[str], env: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the container of a Job's Pods."""
    return {
        "name": "apply",
        "image": str(settings.image),
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "env": env,
        # Without a termination message, the end of the log becomes the message.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def plan_variables(owner: Owner) -> list[dict[str, Any]]:
    """Return the variables that name the plan and its attempt."""
    return [{"name": PLAN_NAME, "value": owner.name}, *_identity(owner)]


def _identity(owner: Owner) -> list[dict[str, Any]]:
    """Return the variables beside the name: the uid, and from the second on the attempt, after which Jobs are named."""
    attempt = [{"name": PLAN_ATTEMPT, "value": str(owner.attempt)}] if owner.attempt > FIRST_ATTEMPT else []
    return [{"name": PLAN_UID, "value": owner.uid}, *attempt]
