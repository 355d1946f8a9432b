"""Plans that hold up the next one: one upgrade at a time. All functions read a raw status.

The reconciler accepts plans by it, and the webhook's check of concurrency denies them.
"""

from __future__ import annotations

from typing import Any

from upgrade_manager.api.conditions import PROGRESSING, TRUE, find_condition
from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.phases import PhaseName

#: The resource of plans, for kubectl.
UPGRADE_PLANS = "upgradeplans.management.harvesterhci.io"
#: Field of Rancher's cluster that a plan may leave to the next one.
STRATEGY_FIELD = "spec.rkeConfig.upgradeStrategy"
_STRATEGY = (f"Cluster {FLEET_LOCAL}/{PROVISIONING_CLUSTER}", STRATEGY_FIELD)


def is_in_progress(status: object) -> bool:
    """Return True while the plan upgrades the cluster or cleans up: no other plan may start."""
    if not isinstance(status, dict):
        return False
    progressing = find_condition(status.get("conditions"), PROGRESSING) or {}
    return progressing.get("status") == TRUE or status.get("currentPhase") == PhaseName.IMAGE_CLEANUP.active


def wait_command(plan: str) -> str:
    """Return the command that waits until the plan has ended."""
    return f"kubectl wait --for=condition=Progressing=False --timeout=24h {UPGRADE_PLANS} {plan}"


def blocks_next_plan(status: object) -> bool:
    """Return True while a plan that has ended must give settings back; Rancher's strategy passes to the next plan."""
    entries = recorded_originals(status.get("originals")) if isinstance(status, dict) else []
    return any((entry["object"], entry["field"]) != _STRATEGY for entry in entries)


def recorded_originals(entries: object) -> list[dict[str, Any]]:
    """Return the valid entries of `status.originals`: object, field, original, applied."""
    valid = entries if isinstance(entries, list) else []
    return [entry for entry in valid if isinstance(entry, dict) and {"object", "field"} <= entry.keys()]
