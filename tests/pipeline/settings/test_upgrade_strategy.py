"""Rancher's upgradeStrategy with the manager's hooks, and without them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.nodes import POST, PRE
from upgrade_manager.facts.drain_hooks import has_hooks, without_hooks_of
from upgrade_manager.pipeline.settings.upgrade_strategy import (
    holds_nodes,
    merge,
    with_hooks,
    without_hooks,
)

DRAIN_OPTIONS = {
    "enabled": True,
    "force": True,
    "ignoreDaemonSets": True,
    "deleteEmptyDirData": True,
    "gracePeriod": -1,
    "preDrainHooks": [{"annotation": PRE}],
    "postDrainHooks": [{"annotation": POST}],
}


def hooks(*annotations: str) -> dict[str, Any]:
    return {"controlPlaneDrainOptions": {"preDrainHooks": [{"annotation": name} for name in annotations]}}


@pytest.mark.rule(
    "nodes: upgradeStrategy takes one node at a time for control plane and workers",
    "nodes: drainOptions of both roles have enabled, force, ignoreDaemonSets and deleteEmptyDirData",
    "nodes: drainOptions of both roles name the pre-drain and the post-drain hook once",
    "nodes: drainOptions of both roles let Pods shut down in their own grace period",
)
def test_strategy_takes_one_node_at_a_time_with_both_hooks() -> None:
    assert with_hooks({}) == {
        "controlPlaneConcurrency": "1",
        "workerConcurrency": "1",
        "controlPlaneDrainOptions": DRAIN_OPTIONS,
        "workerDrainOptions": DRAIN_OPTIONS,
    }


@pytest.mark.rule("nodes: drainOptions of both roles name the pre-drain and the post-drain hook once")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([], [PRE], id="no hooks"),
        pytest.param(["other/hook"], ["other/hook", PRE], id="another hook"),
        pytest.param([PRE], [PRE], id="our hook already"),
        pytest.param([PRE, "other/hook", PRE], ["other/hook", PRE], id="our hook twice"),
    ],
)
def test_other_hooks_stay(old: list[str], new: list[str]) -> None:
    found = with_hooks(hooks(*old))["controlPlaneDrainOptions"]["preDrainHooks"]
    assert found == [{"annotation": name} for name in new]


@pytest.mark.rule("nodes: drainOptions of both roles have enabled, force, ignoreDaemonSets and deleteEmptyDirData")
def test_other_fields_of_the_strategy_stay() -> None:
    old = {"workerConcurrency": "3", "future": 1, "workerDrainOptions": {"timeout": 60, "force": False}}
    new = with_hooks(old)
    assert (new["workerConcurrency"], new["future"]) == ("1", 1)
    assert new["workerDrainOptions"] == DRAIN_OPTIONS | {"timeout": 60}


OUR_HOOK = {"workerDrainOptions": {"postDrainHooks": [{"annotation": POST}], "force": True}}


@pytest.mark.parametrize(
    ("recorded", "restored"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("x", None, id="text"),
        pytest.param({"workerConcurrency": "2"}, {"workerConcurrency": "2"}, id="without hooks"),
        pytest.param(hooks("x"), hooks("x"), id="another hook"),
        pytest.param(hooks("x", PRE), hooks("x"), id="our hook and another"),
        pytest.param(OUR_HOOK, {"workerDrainOptions": {"force": True}}, id="our hook alone"),
        pytest.param({"workerDrainOptions": None}, {"workerDrainOptions": None}, id="null stays"),
    ],
)
def test_hooks_of_an_earlier_upgrade_are_not_restored(recorded: Any, restored: Any) -> None:
    assert without_hooks(recorded) == restored


@pytest.mark.parametrize("old", [None, {"workerDrainOptions": None}])
def test_null_strategy_counts_as_absent(old: dict[str, Any] | None) -> None:
    assert with_hooks(old)["workerDrainOptions"] == DRAIN_OPTIONS


HELD = with_hooks({})


@pytest.mark.parametrize(
    ("strategy", "has", "holds"),
    [
        pytest.param(None, False, False, id="none"),
        pytest.param(hooks("x"), False, False, id="another hook"),
        pytest.param(hooks("x", PRE), True, False, id="one of the manager's hooks"),
        pytest.param(HELD, True, True, id="all hooks"),
        pytest.param(with_hooks(hooks("x")), True, True, id="all hooks and another"),
        pytest.param({**HELD, "controlPlaneConcurrency": "2"}, True, True, id="another concurrency"),
        pytest.param({**HELD, "workerDrainOptions": None}, True, False, id="no hooks for workers"),
        pytest.param(
            {**HELD, "workerDrainOptions": {**DRAIN_OPTIONS, "enabled": False}}, True, False, id="workers not drained"
        ),
        pytest.param(
            {**HELD, "controlPlaneDrainOptions": {**DRAIN_OPTIONS, "postDrainHooks": []}}, True, False, id="one hook"
        ),
    ],
)
def test_hooks_are_recognized(strategy: Any, *, has: bool, holds: bool) -> None:
    assert (has_hooks(strategy), holds_nodes(strategy)) == (has, holds)


OWN = {"workerConcurrency": "4", "controlPlaneDrainOptions": {"timeout": 60}}


@pytest.mark.rule("nodes: parts of the strategy that a user changes during the upgrade are kept")
@pytest.mark.parametrize(
    ("original", "change", "merged"),
    [
        pytest.param(None, {}, None, id="none before"),
        pytest.param({}, {}, {}, id="empty before"),
        pytest.param(OWN, {}, OWN, id="unchanged"),
        pytest.param(None, {"workerConcurrency": "3"}, {"workerConcurrency": "3"}, id="a part where none was"),
        pytest.param(OWN, {"controlPlaneConcurrency": "2"}, {**OWN, "controlPlaneConcurrency": "2"}, id="a part"),
        pytest.param(
            OWN,
            {"controlPlaneDrainOptions": {**with_hooks(OWN)["controlPlaneDrainOptions"], "timeout": 7}},
            {**OWN, "controlPlaneDrainOptions": {"timeout": 7}},
            id="a drain option",
        ),
        pytest.param(
            OWN,
            {"workerDrainOptions": {**DRAIN_OPTIONS, "preDrainHooks": [{"annotation": PRE}, {"annotation": "x"}]}},
            {**OWN, "workerDrainOptions": {"preDrainHooks": [{"annotation": "x"}]}},
            id="another controller's hook",
        ),
    ],
)
def test_values_of_others_are_kept(original: Any, change: dict[str, Any], merged: Any) -> None:
    applied = with_hooks(original)
    assert merge(original, applied, {**applied, **change}) == merged


def strategy_of_earlier_version(original: dict[str, Any]) -> dict[str, Any]:
    """Return the strategy as versions without gracePeriod applied it."""
    applied = with_hooks(original)
    for role in ("controlPlaneDrainOptions", "workerDrainOptions"):
        del applied[role]["gracePeriod"]
    return applied


@pytest.mark.rule("nodes: a strategy that an earlier version applied is recognized and given back")
def test_strategy_of_an_earlier_version_is_given_back() -> None:
    applied = strategy_of_earlier_version(OWN)
    assert holds_nodes(applied)
    assert merge(OWN, applied, applied) == OWN


@pytest.mark.rule("nodes: a strategy that an earlier version applied is recognized and given back")
def test_next_plan_changes_the_strategy_of_an_earlier_version() -> None:
    taken_over = with_hooks(strategy_of_earlier_version(OWN))
    assert taken_over == with_hooks(OWN)
    assert merge(OWN, taken_over, taken_over) == OWN


def test_removed_strategy_stays_removed() -> None:
    assert merge(OWN, with_hooks(OWN), None) is None


@pytest.mark.parametrize(
    ("strategy", "changed"),
    [
        pytest.param(None, {}, id="none"),
        pytest.param(hooks(PRE, "b"), {}, id="not there"),
        pytest.param(hooks(PRE, "a", "b"), hooks(PRE, "b"), id="one of three"),
        pytest.param(
            {"workerDrainOptions": {"postDrainHooks": [{"annotation": "a"}], "timeout": 1}},
            {"workerDrainOptions": {"postDrainHooks": []}},
            id="the only one",
        ),
    ],
)
def test_lists_that_change_without_a_foreign_hook(strategy: Any, changed: Any) -> None:
    assert without_hooks_of(strategy, {"a"}) == changed
