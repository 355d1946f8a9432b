from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from upgrade_manager.api.keys import LABEL_PLAN, LABEL_PLAN_UID, Component
from upgrade_manager.resources.owner import Owner, described_owner

OWNER = Owner(name="up", uid="u-1")


def test_labels_and_selectors() -> None:
    assert OWNER.labels(Component.REPO) == {
        "management.harvesterhci.io/upgrade-plan": "up",
        "management.harvesterhci.io/upgrade-component": "repo",
        "management.harvesterhci.io/upgrade-plan-uid": "u-1",
    }
    expected = "management.harvesterhci.io/upgrade-plan-uid=u-1,management.harvesterhci.io/upgrade-component=repo"
    assert OWNER.selector(Component.REPO) == OWNER.suc_selector(Component.REPO) == expected
    assert OWNER.selector() == OWNER.suc_selector() == "management.harvesterhci.io/upgrade-plan-uid=u-1"


def test_plans_of_an_earlier_version_are_found_by_name() -> None:
    earlier = replace(OWNER, has_unlabeled=True)
    assert earlier.selector() == OWNER.selector()
    assert earlier.suc_selector() == "management.harvesterhci.io/upgrade-plan=up"
    expected = "management.harvesterhci.io/upgrade-plan=up,!management.harvesterhci.io/upgrade-plan-uid"
    assert OWNER.unlabeled_selector() == expected


@pytest.mark.parametrize(
    ("references", "owns"),
    [
        pytest.param([{"uid": "u-1", "controller": True}], True, id="controlled"),
        pytest.param([{"uid": "u-1"}], False, id="owned, not controlled"),
        pytest.param([{"uid": "u-0", "controller": True}], False, id="controlled by a deleted plan"),
        pytest.param([], False, id="no owner"),
        pytest.param(None, False, id="no references"),
    ],
)
def test_owns(references: list[Any] | None, owns: bool) -> None:  # noqa: FBT001  # a table
    assert OWNER.owns({"metadata": {"ownerReferences": references}}) is owns


@pytest.mark.parametrize(
    ("label", "controller", "owns"),
    [
        pytest.param("u-1", "", True, id="labeled"),
        pytest.param("u-1", "u-9", True, id="labeled, controlled by another object"),
        pytest.param("u-0", "", False, id="of an earlier plan of that name"),
        pytest.param("u-0", "u-1", False, id="the label decides"),
    ],
)
def test_label_decides_about_ownership(label: str, controller: str, *, owns: bool) -> None:
    references = [{"uid": controller, "controller": True}] if controller else []
    assert OWNER.owns({"metadata": {"labels": {LABEL_PLAN_UID: label}, "ownerReferences": references}}) is owns


@pytest.mark.parametrize(
    ("metadata", "described"),
    [
        ({"labels": {LABEL_PLAN: "up", LABEL_PLAN_UID: "u-0"}}, "UpgradePlan up (uid u-0)"),
        ({"ownerReferences": [{"kind": "Job", "name": "j", "uid": "u-2"}]}, "Job j (uid u-2)"),
        ({}, ""),
    ],
    ids=["by labels", "by references", "unowned"],
)
def test_owner_is_described_by_name_and_uid(metadata: dict[str, Any], described: str) -> None:
    assert described_owner({"metadata": metadata}) == described
