"""The toolkit image, and what Pods that run it need: environment variables and tolerations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Environment variables that the toolkit reads.
PLAN_NAME = "HARVESTER_UPGRADEPLAN_NAME"
NODE_NAME = "HARVESTER_UPGRADE_NODE_NAME"
POD_NAME = "HARVESTER_UPGRADE_POD_NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitImage:
    """The toolkit's container image.

    The tag is spec.upgrade, else the release's Harvester version, else the manager's version.
    """

    repository: str
    tag: str

    def __str__(self) -> str:
        """`repository:tag`, as containers name it."""
        return f"{self.repository}:{self.image_tag}"

    @property
    def image_tag(self) -> str:
        """The tag as registries allow it: `+` becomes `-`, as in the system-upgrade-controller."""
        return self.tag.replace("+", "-")


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
