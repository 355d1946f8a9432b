from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.status import node_entry, record_phase

NOW = datetime(2025, 11, 21, 9, tzinfo=UTC)
REACHED = {"phase": "Initializing", "phaseTransitionTimestamp": "2025-11-21T09:00:00Z"}


@pytest.mark.rule(
    "api: an entry has a phase and the time at which it was reached",
    "api: times are RFC 3339, UTC, in whole seconds",
)
@pytest.mark.parametrize("timestamps", [None, "invalid", [], {}], ids=repr)
def test_the_first_phase_starts_the_list(timestamps: object) -> None:
    assert record_phase(timestamps, "Initializing", NOW) == [REACHED]


@pytest.mark.rule("api: phaseTransitionTimestamps are append-only")
def test_phases_are_appended() -> None:
    old: list[Any] = ["invalid", {**REACHED, "by": "x"}]
    assert record_phase(old, "Initialized", NOW) == [
        *old,
        {"phase": "Initialized", "phaseTransitionTimestamp": "2025-11-21T09:00:00Z"},
    ]
    assert len(old) == 2


@pytest.mark.rule("api: each phase value is recorded once")
def test_a_phase_is_recorded_once() -> None:
    assert record_phase([REACHED], "Initializing", NOW.replace(hour=10)) == [REACHED]


@pytest.mark.rule(
    "api: nodeUpgradeStatuses map a node to state and optional reason and message",
    "api: within a group the first state is kept",
)
@pytest.mark.parametrize(
    ("old", "state", "reason", "message", "expected"),
    [
        pytest.param(None, NodeState.PRE_DRAINING, "", "", {"state": "PreDraining"}, id="the first state"),
        pytest.param({"state": 3}, NodeState.PRE_DRAINING, "", "", {"state": "PreDraining"}, id="no readable state"),
        pytest.param(
            {"state": "PreDraining", "message": "attempt 1 failed", "zone": "a"},
            NodeState.PRE_DRAINED,
            "",
            "",
            {"state": "PreDrained", "zone": "a"},
            id="forward: the old message goes, unknown fields stay",
        ),
        pytest.param(
            {"state": "PreDraining", "message": "attempt 1 failed"},
            NodeState.PRE_DRAINING,
            "JobRetrying",
            "attempt 2 failed",
            {"state": "PreDraining", "reason": "JobRetrying", "message": "attempt 2 failed"},
            id="the same state: a new message",
        ),
        pytest.param(
            {"state": "PreDrainFailed", "message": "cause"},
            NodeState.PRE_DRAINED,
            "",
            "late",
            {"state": "PreDrainFailed", "message": "cause"},
            id="an alternative comes too late",
        ),
        pytest.param(
            {"state": "FirmwareUpdating"},
            NodeState.POST_DRAINED,
            "",
            "m",
            {"state": "FirmwareUpdating"},
            id="an unknown state stays",
        ),
    ],
)
def test_an_observed_state_is_merged_into_the_entry(
    old: object, state: NodeState, reason: str, message: str, expected: dict[str, Any]
) -> None:
    assert node_entry(old, state, reason=reason, message=message) == expected


def test_the_old_entry_is_not_modified() -> None:
    old = {"state": "PreDraining"}
    node_entry(old, NodeState.PRE_DRAINED)
    assert old == {"state": "PreDraining"}
