"""Estimates the end of an upgrade from its upgraded nodes, with an error of at most a factor of two.

pipeline/node_upgrade/report.py writes the estimate to the status. A worse estimate is left out.
"""

from __future__ import annotations

from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.nodes.milestones import upgrade_seconds

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from upgrade_manager.nodes.model import Decided, Decision, Decisions, NodeView

#: The durations that an estimate needs: one node may differ from all others, as by its VMs.
SAMPLES = 2
#: The time of a node's image clean-up, relative to its upgrade.
CLEANUP = 0.05
#: The smallest share of remaining nodes for an estimate: fewer nodes take less time than the clean-up of all nodes,
#: whose duration is unknown.
LEAST_LEFT = 0.1


def completion(decisions: Decisions, *, now: datetime) -> datetime | None:
    """Return the estimated end of the upgrade at the time at which a node finishes; None without a good estimate."""
    done = [view for view, decision in decisions.all() if decision.is_done]
    seconds = [found for view in done if (found := upgrade_seconds(view, now=now)) is not None]
    left = len(decisions) - len(done)
    if len(seconds) < SAMPLES or left < max(1, LEAST_LEFT * len(decisions)) or is_paused(decisions.active):
        return None
    return now + timedelta(seconds=median(seconds) * (left + CLEANUP * len(decisions)))


def is_paused(decisions: Collection[Decided]) -> bool:
    """Return True if a node waits for a user: then the end is unknown."""
    return any(decision.state is NodeState.UPGRADE_PAUSED for _, decision in decisions)


def finishes(view: NodeView, decision: Decision) -> bool:
    """Return True if the node's upgrade has ended since the last reconcile."""
    return decision.is_done and (view.state is None or not view.state.upgraded)
