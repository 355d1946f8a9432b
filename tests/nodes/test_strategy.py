from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.nodes.upgrade_strategy import asks_us, generation, rke_config, upgrade_strategy, without_our_hooks

PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
OURS = {
    "enabled": True,
    "force": True,
    "ignoreDaemonSets": True,
    "deleteEmptyDirData": True,
    "preDrainHooks": [{"annotation": PRE}],
    "postDrainHooks": [{"annotation": POST}],
}


def hooks(*annotations: str) -> dict[str, Any]:
    return {"controlPlaneDrainOptions": {"preDrainHooks": [{"annotation": name} for name in annotations]}}


@pytest.mark.rule(
    "nodes: upgradeStrategy takes one node at a time for control plane and workers",
    "nodes: drainOptions of both roles have enabled, force, ignoreDaemonSets and deleteEmptyDirData",
    "nodes: drainOptions of both roles name the pre-drain and the post-drain hook once",
)
def test_nodes_are_taken_one_by_one_with_both_hooks_whatever_their_role() -> None:
    assert upgrade_strategy({}) == {
        "controlPlaneConcurrency": "1",
        "workerConcurrency": "1",
        "controlPlaneDrainOptions": OURS,
        "workerDrainOptions": OURS,
    }


@pytest.mark.rule("nodes: drainOptions of both roles name the pre-drain and the post-drain hook once")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([], [PRE], id="none before"),
        pytest.param(["other/hook"], ["other/hook", PRE], id="someone else's stays"),
        pytest.param([PRE], [PRE], id="ours is not doubled"),
        pytest.param([PRE, "other/hook", PRE], ["other/hook", PRE], id="nor left doubled"),
    ],
)
def test_hooks_of_others_stay(old: list[str], new: list[str]) -> None:
    found = upgrade_strategy({"upgradeStrategy": hooks(*old)})["controlPlaneDrainOptions"]["preDrainHooks"]
    assert found == [{"annotation": name} for name in new]


@pytest.mark.rule("nodes: drainOptions of both roles have enabled, force, ignoreDaemonSets and deleteEmptyDirData")
def test_what_else_others_have_in_the_strategy_stays() -> None:
    old = {"workerConcurrency": "3", "future": 1, "workerDrainOptions": {"timeout": 60, "force": False}}
    new = upgrade_strategy({"upgradeStrategy": old})
    assert (new["workerConcurrency"], new["future"], new["workerDrainOptions"]) == ("1", 1, OURS | {"timeout": 60})


@pytest.mark.parametrize(
    ("noted", "restored"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("x", None, id="no strategy"),
        pytest.param({"workerConcurrency": "2"}, {"workerConcurrency": "2"}, id="without hooks"),
        pytest.param(hooks("x"), hooks("x"), id="someone else's hook"),
        pytest.param(hooks("x", PRE), hooks("x"), id="ours beside it goes"),
        pytest.param(
            {"workerDrainOptions": {"postDrainHooks": [{"annotation": POST}], "force": True}},
            {"workerDrainOptions": {"force": True}},
            id="ours alone goes with its list",
        ),
        pytest.param({"workerDrainOptions": None}, {"workerDrainOptions": None}, id="null stays"),
    ],
)
def test_hooks_that_an_earlier_upgrade_has_left_do_not_come_back(noted: Any, restored: Any) -> None:
    assert without_our_hooks(noted) == restored


@pytest.mark.parametrize("rke", [{"upgradeStrategy": None}, {"upgradeStrategy": {"workerDrainOptions": None}}])
def test_nulls_count_as_absent(rke: dict[str, Any]) -> None:
    assert upgrade_strategy(rke)["workerDrainOptions"] == OURS


@pytest.mark.parametrize(
    ("cluster", "asks", "counted"),
    [
        pytest.param({}, False, 0, id="no spec"),
        pytest.param({"spec": {"rkeConfig": None}}, False, 0, id="rkeConfig null"),
        pytest.param({"spec": {"rkeConfig": {"provisionGeneration": 4}}}, False, 4, id="a generation"),
        pytest.param({"spec": {"rkeConfig": {"upgradeStrategy": None}}}, False, 0, id="no strategy"),
        pytest.param({"spec": {"rkeConfig": {"upgradeStrategy": hooks("x")}}}, False, 0, id="someone else's hook"),
        pytest.param({"spec": {"rkeConfig": {"upgradeStrategy": hooks("x", PRE)}}}, True, 0, id="our hook"),
    ],
)
def test_the_cluster_is_read_as_far_as_it_goes(cluster: dict[str, Any], asks: bool, counted: int) -> None:  # noqa: FBT001  # a table
    assert asks_us(cluster) is asks
    assert generation(cluster) == counted
    assert isinstance(rke_config(cluster), dict)
