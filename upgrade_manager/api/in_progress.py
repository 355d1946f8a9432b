"""Plans that hold up the next one: one upgrade at a time. All functions read a raw status.

The reconciler accepts plans by it, and the webhook's check of concurrency denies them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.conditions import DEGRADED, PROGRESSING, TAKEN_OVER, TRUE, find_condition
from upgrade_manager.api.ledger import LedgerKind, recorded_entries
from upgrade_manager.api.phases import PhaseName

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The resource of plans, for kubectl.
UPGRADE_PLANS = "upgradeplans.management.harvesterhci.io"


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
    """Return True while a plan that has ended must give settings back; other entries of its ledger pass on."""
    return any(LedgerKind(entry["kind"]).holds_next_plan for entry in recorded_entries(status))


def taken_over(status: Mapping[str, Any]) -> str:
    """Return why a plan that has failed has no further attempt; empty unless another plan has taken over."""
    degraded = find_condition(status.get("conditions"), DEGRADED) or {}
    if degraded.get("reason") != TAKEN_OVER:
        return ""
    # The first sentence names the other plan.
    return f"{str(degraded.get('message')).partition('. ')[0]}, so that this one has no further attempt"
