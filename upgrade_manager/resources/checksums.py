"""The Job that computes checksums of the ISO's files, where the upgrade repository has mounted it.

Its command is toolkit/commands/checksums, and pipeline/iso_checksums reads its result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.resources.jobs import container, job_spec, plan_variables
from upgrade_manager.resources.repository import IMAGE_FILE, ROOT

if TYPE_CHECKING:
    from upgrade_manager.resources.jobs import JobSettings
    from upgrade_manager.resources.owner import Owner

#: Seconds for all attempts. The upgrade continues without checksums then.
DEADLINE = 600
#: `exec` lets the command receive SIGTERM.
COMPUTE = f"set -e; mkdir -p {ROOT}; mount -o loop,ro {IMAGE_FILE} {ROOT}; exec upgrade_node.sh checksums"


def checksums_job(owner: Owner, settings: JobSettings, *, claim: str) -> dict[str, Any]:
    """Build the Job; `claim` is the PVC that contains the ISO."""
    job = owner.manifest(JOBS, owner.name_of(Component.CHECKSUMS), Component.CHECKSUMS, namespace=HARVESTER_SYSTEM)
    apply = container(settings, ["/bin/sh", "-c"], plan_variables(owner)) | {
        "args": [COMPUTE],
        # Required for the loop mount.
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "iso", "mountPath": "/iso", "readOnly": True}],
    }
    # The volume is attached there already.
    selected = {"matchLabels": owner.match_labels(Component.REPO)}
    beside = {"labelSelector": selected, "topologyKey": "kubernetes.io/hostname"}
    pod = {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}},
        "containers": [apply],
        "volumes": [{"name": "iso", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}],
    }
    job["spec"] = job_spec(job, settings, pod) | {"activeDeadlineSeconds": DEADLINE}
    return job
