"""What an upgrade has made and changed, as far as that still shows in its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.upgrade import end_state
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.simulation import Simulation


async def ours(simulation: Simulation, plan: str = "upgrade") -> list[str]:
    """Titles of what the manager and its helpers have created."""
    state = (await end_state(simulation)).items()
    return [title for title, obj in state if objects.labels(obj).get("management.harvesterhci.io/upgrade-plan") == plan]


async def settings(simulation: Simulation) -> list[Any]:
    """Of everything that an upgrade changes for its time, what it is now."""
    state = await end_state(simulation)
    nodes = [obj for obj in state.values() if obj["kind"] == "Node"]
    return [
        state["Setting longhorn-system/replica-replenishment-wait-interval"]["value"],
        state["Addon kube-system/descheduler"]["spec"]["enabled"],
        objects.spec(state["Cluster fleet-local/local"])["rkeConfig"].get("upgradeStrategy"),
        [key for node in nodes for key in objects.labels(node) if key.startswith("plan.upgrade.cattle.io/")],
        [key for node in nodes for key in objects.annotations_of(node) if "pendingOSImage" in key],
    ]
