"""The toolkit image, and what Pods that run it need: environment variables and tolerations.

jobs.py, suc_plan.py and repository.py add them; cli/toolkit_options.py reads the variables in the Pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.checksums import write_checksums

if TYPE_CHECKING:
    from collections.abc import Mapping

# Environment variables that the toolkit reads.
PLAN_NAME = "HARVESTER_UPGRADEPLAN_NAME"
#: Which plan of that name it is; only our toolkit reads it.
PLAN_UID = "HARVESTER_UPGRADEPLAN_UID"
#: Absent in the first attempt of a plan.
PLAN_ATTEMPT = "HARVESTER_UPGRADEPLAN_ATTEMPT"
NODE_NAME = "HARVESTER_UPGRADE_NODE_NAME"
POD_NAME = "HARVESTER_UPGRADE_POD_NAME"
#: Set to "Reboot" if the Pod holds before the reboot; only our toolkit reads it.
HOLDS = "HARVESTER_UPGRADE_HOLDS"
#: Checksums of the ISO's files (api/checksums), which only our toolkit reads.
ISO_CHECKSUMS = "HARVESTER_UPGRADE_CHECKSUMS"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitImage:
    """The toolkit's container image, as `api.toolkit_image` decides it."""

    repository: str
    #: Without effect where the image has a digest.
    tag: str
    digest: str = ""

    def __str__(self) -> str:
        """`repository:tag` or `repository@digest`, as containers name it."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.image_tag}"

    @property
    def image_tag(self) -> str:
        """The tag as registries allow it: `+` becomes `-`, as in the system-upgrade-controller."""
        return self.tag.replace("+", "-")


def checksums_variable(checksums: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the variable with checksums of the ISO's files; none without any."""
    return [{"name": ISO_CHECKSUMS, "value": write_checksums(checksums)}] if checksums else []


def tolerations() -> list[dict[str, Any]]:
    """Return the tolerations of a Pod that runs while nodes are cordoned, drained and rebooted."""
    return [
        _exists("node.kubernetes.io/unschedulable", "NoSchedule"),
        _exists("node.kubernetes.io/unreachable", "NoExecute"),
        _exists("node-role.kubernetes.io/control-plane", "NoExecute"),
        _exists("node-role.kubernetes.io/etcd", "NoExecute"),
        *(
            {"key": "kubernetes.io/arch", "operator": "Equal", "value": arch, "effect": "NoSchedule"}
            for arch in ("amd64", "arm64", "arm")
        ),
        _exists("kubevirt.io/drain", "NoSchedule"),
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
    ]


def _exists(key: str, effect: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": effect}
