from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.nodes import VIEW, job_state
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.nodes.estimate import completion, finishes
from upgrade_manager.nodes.model import Decision, Decisions, NodeView

if TYPE_CHECKING:
    from upgrade_manager.nodes.model import Decided

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def done(hours: float, *, recorded: bool = True, holds: bool = False, jobs: bool = True) -> Decided:
    """Return a node whose upgrade took so many hours."""
    begun, ended = NOW - hours * HOUR, NOW
    pre_drain = job_state(Progress.COMPLETE, started=at(begun), completed=at(begun))
    post_drain = job_state(Progress.COMPLETE, started=at(begun), completed=at(ended))
    view = replace(
        VIEW,
        state=NodeState.POST_DRAINED if recorded else NodeState.WAITING_REBOOT,
        jobs={JobType.PRE_DRAIN: pre_drain, JobType.POST_DRAIN: post_drain} if jobs else {},
        ready_since=at(ended),
    )
    return view, Decision(state=NodeState.POST_DRAINED, holds=holds)


def left(state: NodeState | None = None) -> tuple[NodeView, Decision]:
    return VIEW, Decision(state=state)


@pytest.mark.parametrize(
    ("decisions", "hours"),
    [
        pytest.param([left()] * 3, None, id="no node is done"),
        pytest.param([done(2)] * 2 + [left()] * 2, 2 * 2.2, id="two nodes are left, and the clean-up of four"),
        pytest.param([done(2), left(), left()], None, id="one node may differ from all others"),
        pytest.param([done(1), done(2), done(9), left()], 2 * 1.2, id="the median"),
        pytest.param([done(2), done(2), left(NodeState.UPGRADE_PAUSED), left()], None, id="a node is paused"),
        pytest.param([done(2), done(2, jobs=False), left(), left()], None, id="its Jobs were deleted"),
        pytest.param([done(2), done(2)], None, id="no node is left"),
        pytest.param([done(2)] * 19 + [left()], None, id="of twenty nodes one: their clean-up may take longer"),
        pytest.param([done(2)] * 18 + [left()] * 2, 2 * 3, id="of twenty nodes two"),
        pytest.param([done(1), done(1), done(2, holds=True), left()], 1 * 2.2, id="a lost node counts as left"),
    ],
)
def test_completion_follows_the_nodes_that_are_done(decisions: list[Decided], hours: float | None) -> None:
    found = completion(Decisions(active=decisions), now=NOW)
    assert found == (None if hours is None else pytest.approx(NOW + hours * HOUR, abs=timedelta(seconds=1)))


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        pytest.param(done(1, recorded=False), True, id="now"),
        pytest.param(done(1), False, id="before"),
        pytest.param(done(1, recorded=False, holds=True), False, id="lost"),
        pytest.param(left(NodeState.POST_DRAINING), False, id="not done"),
    ],
)
def test_node_finishes_once(pair: Decided, *, expected: bool) -> None:
    assert finishes(*pair) is expected
