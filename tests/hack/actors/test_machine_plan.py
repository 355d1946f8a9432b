from __future__ import annotations

from typing import Any

import pytest

from hack.actors import machine_plan as plans

OPTIONS = {
    "enabled": True,
    "force": True,
    "deleteEmptyDirData": True,
    "ignoreDaemonSets": True,
    "disableEviction": False,
    "gracePeriod": 0,
    "timeout": 0,
    "skipWaitForDeleteTimeoutSeconds": 0,
    "preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}],
    "postDrainHooks": [{"annotation": "harvesterhci.io/post-hook"}],
}
TEXT = (
    '{"deleteEmptyDirData":true,"disableEviction":false,"enabled":true,"force":true,"gracePeriod":0,'
    '"ignoreDaemonSets":true,"postDrainHooks":[{"annotation":"harvesterhci.io/post-hook"}],'
    '"preDrainHooks":[{"annotation":"harvesterhci.io/pre-hook"}],"skipWaitForDeleteTimeoutSeconds":0,"timeout":0}'
)


def cluster(version: str = "v1.34.3+rke2r1", generation: int = 3, **more: Any) -> dict[str, Any]:
    return {"spec": {"kubernetesVersion": version, "rkeConfig": {"provisionGeneration": generation} | more}}


MACHINE = {"metadata": {"uid": "m-1", "labels": {"rke.cattle.io/etcd-role": "true"}}}


def test_drain_text_is_the_documented_one() -> None:
    assert plans.drain_text(OPTIONS, single=False) == TEXT


def test_hooks_without_a_key_are_ignored() -> None:
    text = plans.drain_text({"preDrainHooks": [{"annotation": ""}, {"annotation": "a/b"}]}, single=False)
    assert plans.hooks(text, "preDrainHooks") == ["a/b"]
    assert plans.hooks(text, "postDrainHooks") == []


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        pytest.param(cluster(generation=4), True, id="another generation"),
        pytest.param(cluster("v1.35.2+rke2r1"), True, id="another version"),
        pytest.param(cluster(), False, id="nothing"),
        pytest.param(cluster(upgradeStrategy={"workerConcurrency": "3"}), False, id="only the strategy"),
    ],
)
def test_changes_that_make_a_new_plan(changed: dict[str, Any], *, differs: bool) -> None:
    old, new = plans.plan_of(cluster(), MACHINE), plans.plan_of(changed, MACHINE)
    assert (plans.drain_hash(old) != plans.drain_hash(new)) is differs


@pytest.mark.parametrize(
    ("text", "members", "result"),
    [(None, 5, 1), ("", 5, 1), ("1", 5, 1), ("0", 5, 0), ("3", 5, 3), ("10%", 25, 3), ("1%", 3, 1), ("100%", 4, 4)],
)
def test_concurrency_is_a_number_or_a_percentage(text: str | None, members: int, result: int) -> None:
    assert plans.concurrency(text, members) == result
