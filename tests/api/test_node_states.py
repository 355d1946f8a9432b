from __future__ import annotations

import functools
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.node_states import (
    NodeState,
    late_pause,
    merge,
    resumed_entry,
    started_nodes,
    state_of,
    upgraded_names,
)

GROUPS = [
    {"ImagePreloading"},
    {"ImagePreloaded", "ImagePreloadFailed"},
    {"UpgradePaused"},
    {"PreDraining", "SingleNodeUpgrading"},
    {"PreDrained", "PreDrainFailed"},
    {"PostDraining"},
    {"WaitingReboot"},
    {"PostDrained", "PostDrainFailed", "SingleNodeUpgraded", "SingleNodeUpgradeFailed"},
    {"ImageCleaning"},
    {"ImageCleaned", "ImageCleanFailed"},
]

states = st.sampled_from(NodeState)
unknown = st.text(min_size=1, max_size=20).filter(lambda text: state_of(text) is None)


@pytest.mark.rule("api: each node state belongs to one of ten groups")
@pytest.mark.parametrize(("group", "expected"), list(enumerate(GROUPS)), ids=[min(group) for group in GROUPS])
def test_each_state_has_its_group(group: int, expected: set[str]) -> None:
    assert {state.value for state in NodeState if state.group == group} == expected


def test_upgraded_states() -> None:
    upgraded = {"PostDrained", "SingleNodeUpgraded", "ImageCleaning", "ImageCleaned", "ImageCleanFailed"}
    assert {state.value for state in NodeState if state.upgraded} == upgraded


def test_failed_states() -> None:
    failed = {"PreDrainFailed", "PostDrainFailed", "SingleNodeUpgradeFailed"}
    assert {state.value for state in NodeState if state.failed} == failed


@pytest.mark.rule("api: within a group the first state is kept")
@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        pytest.param(None, NodeState.PRE_DRAINING, "PreDraining", id="the first state"),
        pytest.param("", NodeState.PRE_DRAINING, "PreDraining", id="an empty state"),
        pytest.param("PreDraining", NodeState.PRE_DRAINED, "PreDrained", id="forward"),
        pytest.param("PostDrained", NodeState.PRE_DRAINED, "PostDrained", id="never back"),
        pytest.param("PreDrainFailed", NodeState.PRE_DRAINED, "PreDrainFailed", id="the first verdict stands"),
        pytest.param("FirmwareUpdating", NodeState.POST_DRAINED, "FirmwareUpdating", id="an unknown state stays"),
    ],
)
def test_merge(old: str | None, new: NodeState, merged: str) -> None:
    assert merge(old, new) == merged


@given(unknown, st.lists(states))
def test_unknown_states_are_kept(old: str, observed: list[NodeState]) -> None:
    assert functools.reduce(merge, observed, old) == old


@pytest.mark.rule("api: a node's state group never decreases")
@given(st.lists(states, min_size=1))
def test_highest_group_wins_in_any_order(observed: list[NodeState]) -> None:
    state: str | None = None
    for number, new in enumerate(observed, start=1):
        state = merge(state, new)
        assert merge(state, new) == state
        final = state_of(state)
        assert final in observed[:number]
        assert final is not None
        assert final.group == max(seen.group for seen in observed[:number])


@pytest.mark.parametrize(
    ("entries", "started"),
    [
        pytest.param({"a": {"state": "PreDraining"}, "b": {"state": "UpgradePaused"}}, ["a"], id="one"),
        pytest.param({"a": {"state": "New"}, "b": None, "c": [], "d": {"state": 7}}, [], id="unknown"),
        pytest.param(["a"], [], id="not a mapping"),
        pytest.param(None, [], id="absent"),
    ],
)
def test_nodes_whose_upgrade_has_started(entries: object, started: list[str]) -> None:
    assert [*started_nodes({"nodeUpgradeStatuses": entries})] == started


def test_nodes_that_run_the_new_release() -> None:
    entries = {"a": {"state": "PostDrained"}, "b": {"state": "PostDraining"}, "c": {"state": "ImageCleaned"}, "d": None}
    assert upgraded_names({"nodeUpgradeStatuses": entries}) == {"a", "c"}


def test_pause_of_a_node_under_way_is_too_late() -> None:
    assert late_pause("n1", NodeState.PRE_DRAINING) == (
        "Node n1 is in pauseNodes and is not paused: its upgrade has started (PreDraining)"
    )


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ("ImagePreloadFailed", "ImagePreloading"),
        ("PreDrainFailed", "PreDraining"),
        ("PostDrainFailed", "PostDraining"),
        ("SingleNodeUpgradeFailed", "SingleNodeUpgrading"),
    ],
)
def test_new_attempt_repeats_the_job_that_failed(failed: str, again: str) -> None:
    entry = {"state": failed, "reason": "r", "message": "m", "holds": "Drain", "continued": ["Drain"], "other": 1}
    resumed = resumed_entry(entry, now=datetime(2026, 1, 1, tzinfo=UTC))
    assert resumed == {"state": again, "since": "2026-01-01T00:00:00Z", "other": 1}


@pytest.mark.parametrize(
    "entry",
    [{"state": "PostDrained", "message": "m"}, {"state": "ImageCleanFailed"}, {"state": "New"}, {}, None, "x"],
    ids=repr,
)
def test_other_entries_stay_in_a_new_attempt(entry: object) -> None:
    assert resumed_entry(entry, now=datetime(2026, 1, 1, tzinfo=UTC)) == entry
