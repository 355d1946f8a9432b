from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from upgrade_manager.api.node_states import NodeState, node_entry
from upgrade_manager.api.status import record_phase

NOW = datetime(2025, 11, 21, 9, tzinfo=UTC)
OLD = {"state": "PreDraining", "message": "attempt 1 failed", "zone": "a"}
NEW = {"reason": "JobRetrying", "message": "attempt 2 failed"}
MOVED = {"since": "2025-11-21T09:00:00Z"}
FIRST = {"state": "PreDraining", **MOVED, **NEW}
REACHED = {"phase": "Initializing", "phaseTransitionTimestamp": "2025-11-21T09:00:00Z"}


@pytest.mark.rule(
    "api: an entry has a phase and the time at which it was reached",
    "api: times are RFC 3339, UTC, in whole seconds",
    "api: phaseTransitionTimestamps are append-only",
    "api: each phase value is recorded once",
)
@pytest.mark.parametrize("old", [None, "invalid", {}, [], ["invalid", {"phase": "Initialized", "by": "x"}]], ids=repr)
def test_phase_is_appended_once(old: object) -> None:
    before = copy.deepcopy(old)
    kept = old if isinstance(old, list) else []
    assert record_phase(old, "Initializing", NOW) == [*kept, REACHED]
    assert record_phase([*kept, REACHED], "Initializing", NOW.replace(hour=10)) == [*kept, REACHED]
    assert old == before


@pytest.mark.rule(
    "api: nodeUpgradeStatuses map a node to state, its time, and optional reason and message",
    "api: within a group the first state is kept",
)
@pytest.mark.parametrize(
    ("old", "state", "expected"),
    [
        pytest.param(None, NodeState.PRE_DRAINING, FIRST, id="the first state"),
        pytest.param({"state": 3}, NodeState.PRE_DRAINING, FIRST, id="no readable state"),
        pytest.param(OLD, NodeState.PRE_DRAINED, {"state": "PreDrained", "zone": "a", **MOVED, **NEW}, id="forward"),
        pytest.param(OLD, NodeState.PRE_DRAINING, {**OLD, **NEW}, id="the same state: a new message"),
        pytest.param({**OLD, "state": "PreDrainFailed"}, NodeState.PRE_DRAINED, None, id="an alternative is too late"),
        pytest.param({**OLD, "state": "FirmwareUpdating"}, NodeState.POST_DRAINED, None, id="an unknown state stays"),
    ],
)
def test_observed_state_is_merged_into_the_entry(old: Any, state: NodeState, expected: dict[str, Any] | None) -> None:
    before = copy.deepcopy(old)
    assert node_entry(old, state, now=NOW, **NEW) == (expected or before)
    assert ("message" in node_entry(old, state, now=NOW)) is (expected is None)
    assert old == before
