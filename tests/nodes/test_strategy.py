from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.nodes.strategy import asks_us, generation, rke_config, upgrade_strategy

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


def test_nodes_are_taken_one_by_one_with_both_hooks_whatever_their_role() -> None:
    assert upgrade_strategy({}) == {
        "controlPlaneConcurrency": "1",
        "workerConcurrency": "1",
        "controlPlaneDrainOptions": OURS,
        "workerDrainOptions": OURS,
    }


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
