"""The expected end of an upgrade, from the phases of earlier ones on the same cluster.

view.py and report.py show it; cli/plans.py reads the earlier upgrades.

The manager's own estimate, from the nodes that this upgrade has done, takes precedence; it starts with the first node.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import seconds_of_work
from upgrade_manager.api.node_states import NodeState, state_of
from upgrade_manager.api.phases import PHASE_SPECS, PHASES, NodeWork, PhaseName
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.display.model import PhaseState
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from upgrade_manager.display.model import NodeRow, PhaseRow
    from upgrade_manager.kube.objects import Object

#: Phases that work on one node after the other.
_NODE_BY_NODE = frozenset(spec.name for spec in PHASE_SPECS if spec.nodes is NodeWork.SEQUENTIAL)

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
#: Seconds above which a phase waited for people, or a clock was wrong.
_LONGEST = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The durations of phases in earlier upgrades of the cluster."""

    #: Median seconds; of phases that work node by node, for each node. Empty without an earlier upgrade.
    seconds: Mapping[str, float] = field(default_factory=dict)
    #: The usual number of nodes, for a plan that has not recorded its own yet.
    nodes: float = 0


UNKNOWN_PACE = Pace()


def pace_of(plans: Iterable[Object]) -> Pace:
    """Return the pace of the phases that these plans have completed."""
    seconds, counts = defaultdict(list), []
    for plan in plans:
        nodes = len(objects.mapping(plan, "status", "nodeUpgradeStatuses"))
        if nodes:
            counts.append(nodes)
        for phase, duration in _completed(plan):
            if nodes or phase not in _NODE_BY_NODE:
                seconds[phase.value].append(duration / nodes if phase in _NODE_BY_NODE else duration)
    return Pace(
        seconds={phase: median(found) for phase, found in seconds.items()}, nodes=median(counts) if counts else 0
    )


def _completed(plan: Object) -> Iterator[tuple[PhaseName, float]]:
    entries = objects.items(plan, "status", "phaseTransitionTimestamps")
    times = {objects.text(one, "phase"): parse_time(objects.value(one, "phaseTransitionTimestamp")) for one in entries}
    for phase in PHASES:
        begun, ended = times.get(phase.active), times.get(phase.completed)
        if begun is None or ended is None:
            continue
        duration = seconds_between(begun, ended)
        # A phase that failed once has taken the time of both attempts.
        is_repeated = seconds_of_work(objects.mapping(plan, "status"), begun, ended) < duration
        if duration <= _LONGEST and not is_repeated:
            yield phase, duration


def expected_end(
    phases: Sequence[PhaseRow], nodes: Sequence[NodeRow], pace: Pace, *, began: datetime = _LONG_AGO, now: datetime
) -> datetime | None:
    """Return the time at which the upgrade ends if the remaining work takes its usual time; None if that is unknown.

    The upgrade has started. `began` is the begin of a later attempt, whose own time counts. The end is
    unknown while a node waits for a user. The end is also unknown when the delay of the current work exceeds the usual
    time of the remaining work, because the delay then determines the end.
    """
    if any(row.state == NodeState.UPGRADE_PAUSED for row in nodes):
        return None
    before = sum(_is_done(node) and node.since is not None and node.since < began for node in nodes)
    left = late = 0.0
    for row in phases:
        if row.state in {PhaseState.DONE, PhaseState.SKIPPED}:
            continue
        usual = pace.seconds.get(row.name)
        if usual is None:
            return None
        is_resumed = row.started is not None and row.started < began
        elapsed = seconds_between(began, now) if is_resumed else row.seconds or 0.0
        current, next_ones = _work(row, nodes, pace, usual=usual, elapsed=elapsed, before=before)
        left += max(0.0, current) + next_ones
        late += max(0.0, -current)
    return now + timedelta(seconds=left) if late <= left else None


def _is_done(node: NodeRow) -> bool:
    state = state_of(node.state)
    return state is not None and state.upgraded


def _work(
    row: PhaseRow, nodes: Sequence[NodeRow], pace: Pace, *, usual: float, elapsed: float, before: int
) -> tuple[float, float]:
    """Return the remaining seconds of a phase's current work, below 0 if it is late, and those of the work after it.

    Nodes are upgraded one after the other, so that the delay of a node does not shorten the time of the next node.
    `elapsed` are the seconds of this attempt, `before` the nodes that earlier ones have upgraded.
    """
    count = len(nodes) or pace.nodes
    if row.name != PhaseName.NODE_UPGRADE:
        return usual * (count if row.name in _NODE_BY_NODE else 1) - elapsed, 0.0
    done = sum(map(_is_done, nodes))
    if done >= count:
        return 0.0, 0.0
    return min(usual, usual * (done - before + 1) - elapsed), usual * (count - done - 1)
