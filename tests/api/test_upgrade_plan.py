from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api import keys
from upgrade_manager.api.annotations import Flag
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.upgrade_plan import UpgradePlan

PLAN: dict[str, Any] = {
    "apiVersion": "management.harvesterhci.io/v1beta1",
    "kind": "UpgradePlan",
    "metadata": {
        "name": "up",
        "uid": "0d5b6f1e",
        "generation": 2,
        "resourceVersion": "17",
        "creationTimestamp": "2025-11-21T09:00:00Z",
        "annotations": {keys.ANNOTATION_ALLOW_DELETION: "true"},
        "finalizers": [keys.FINALIZER],
        "managedFields": [{"manager": "kubectl"}],
    },
    "spec": {"version": "v1.8.0", "strategy": {"kind": "canary"}},
    "status": {
        "currentPhase": "NodeUpgrading",
        "conditions": [{"type": "Progressing", "status": "True", "severity": "low"}],
        "nodeUpgradeStatuses": {"node1": {"state": "FirmwareUpdating", "slot": 2}},
        "estimate": {"seconds": 60},
    },
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
paths = st.sampled_from(
    [
        ("metadata",),
        ("metadata", "annotations"),
        ("metadata", "finalizers"),
        ("spec",),
        ("spec", "version"),
        ("spec", "nodeUpgradeOption"),
        ("status",),
        ("status", "conditions"),
        ("status", "nodeUpgradeStatuses"),
        ("status", "nodeUpgradeStatuses", "node1"),
        ("status", "phaseTransitionTimestamps"),
        ("status", "version"),
    ]
)


def test_a_plan_answers_what_decisions_need() -> None:
    plan = UpgradePlan.parse(PLAN)
    assert (plan.name, plan.uid) == ("up", "0d5b6f1e")
    assert (plan.metadata.generation, plan.metadata.resource_version) == (2, "17")
    assert plan.phase is PhaseName.NODE_UPGRADE
    assert plan.progressing
    assert not plan.degraded
    assert not plan.ended
    assert not plan.deleting
    assert plan.finalized
    assert plan.annotations.allow_deletion is Flag.TRUE
    condition = plan.condition("Progressing")
    assert condition is not None
    assert condition.status == "True"


@pytest.mark.rule("api: Succeeded and Failed are terminal")
@pytest.mark.parametrize(
    ("phase", "ended", "succeeded", "failed"),
    [
        ("", False, False, False),
        ("CleanedUp", False, False, False),
        ("Succeeded", True, True, False),
        ("Failed", True, False, True),
        ("FirmwareUpgrading", False, False, False),
    ],
)
def test_a_plan_knows_whether_and_how_it_ended(phase: str, ended: bool, succeeded: bool, failed: bool) -> None:  # noqa: FBT001
    plan = UpgradePlan.parse({"status": {"currentPhase": phase}})
    assert (plan.ended, plan.succeeded, plan.failed) == (ended, succeeded, failed)


def test_a_plan_that_is_deleted_says_so() -> None:
    assert UpgradePlan.parse({"metadata": {"deletionTimestamp": "2025-11-21T09:00:00Z"}}).deleting


def test_fields_of_a_newer_version_survive() -> None:
    assert UpgradePlan.parse(PLAN).dump() == PLAN


def test_reading_leaves_the_object_alone() -> None:
    before = copy.deepcopy(PLAN)
    UpgradePlan.parse(PLAN)
    assert before == PLAN


def test_a_plan_that_was_read_reads_as_itself() -> None:
    plan = UpgradePlan.parse(PLAN)
    assert UpgradePlan.parse(plan) is plan
    assert UpgradePlan(spec=plan.spec).spec is plan.spec


@pytest.mark.parametrize(
    "obj", [None, [], "plan", 3, {}, {1: 2}, {"spec": [], "status": None, "metadata": 3}], ids=repr
)
def test_what_is_no_plan_reads_as_an_empty_one(obj: object) -> None:
    plan = UpgradePlan.parse(obj)
    assert plan.name == ""
    assert plan.phase is None
    assert plan.condition("Progressing") is None
    assert not plan.finalized


def test_one_odd_annotation_does_not_hide_the_others() -> None:
    plan = UpgradePlan.parse(
        {"metadata": {"annotations": {keys.ANNOTATION_SKIP_WEBHOOK: True, keys.ANNOTATION_ALLOW_DELETION: "true"}}}
    )
    assert plan.annotations.skip_webhook is Flag.ABSENT
    assert plan.annotations.allow_deletion is Flag.TRUE


@given(paths, json_values)
def test_no_value_anywhere_makes_reading_fail(path: tuple[str, ...], value: object) -> None:
    obj = copy.deepcopy(PLAN)
    parent = obj
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    plan = UpgradePlan.parse(obj)
    assert isinstance(plan.dump(), dict)
    assert isinstance(plan.progressing, bool)


@given(json_values)
def test_any_json_can_be_read(value: object) -> None:
    assert isinstance(UpgradePlan.parse(value).name, str)
