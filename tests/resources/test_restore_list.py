from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.kube.objects import Object
from upgrade_manager.resources.restore_list import is_list_of, ownership, restore_list

PREFIX = "management.harvesterhci.io"
PLAN: Object = {"metadata": {"name": "up", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:02Z"}}
LABELS = {f"{PREFIX}/upgrade-plan": "up", f"{PREFIX}/upgrade-component": "node-upgrade"}
OWN = {**LABELS, f"{PREFIX}/upgrade-plan-uid": "u-1"}
OF_PLAN = {"kind": "UpgradePlan", "name": "up", "uid": "u-1"}
OF_EARLIER = {**OF_PLAN, "uid": "u-0"}
OF_JOB = {"kind": "Job", "name": "j", "uid": "u-9"}
BEFORE, AFTER = "2026-01-01T00:00:01Z", "2026-01-01T00:00:03Z"


def config_map(labels: Object, *owners: Object, created: str = BEFORE) -> Object:
    return {"metadata": {"labels": labels, "ownerReferences": list(owners), "creationTimestamp": created}}


def test_list_belongs_to_its_plan_by_labels() -> None:
    made = restore_list(PLAN, node="n1", machines=["default/a", "default/b"])
    assert made["metadata"] == {"name": "up-restore-vm", "namespace": "harvester-system", "labels": OWN}
    assert made["data"] == {"n1": "default/a,default/b"}
    assert is_list_of(made, PLAN)
    assert ownership(made, PLAN) == {}


@pytest.mark.parametrize(
    ("found", "is_own"),
    [
        pytest.param(config_map(OWN), True, id="label"),
        pytest.param(config_map({**OWN, f"{PREFIX}/upgrade-plan-uid": "u-0"}, OF_PLAN), False, id="an earlier label"),
        pytest.param(config_map({}, OF_PLAN), True, id="of Harvester's toolkit, with its plan"),
        pytest.param(config_map({}, OF_EARLIER, created=AFTER), False, id="with an earlier plan"),
        pytest.param(config_map({}, OF_JOB, created=AFTER), False, id="handed over by an earlier version"),
        pytest.param(config_map({}, created=AFTER), True, id="unowned, after the plan"),
        pytest.param(config_map({}), False, id="unowned, before the plan"),
    ],
)
def test_list_is_recognized_by_label_owner_or_age(found: Object, *, is_own: bool) -> None:
    assert is_list_of(found, PLAN) is is_own


@pytest.mark.parametrize(
    ("found", "change"),
    [
        pytest.param(config_map({}), {"labels": OWN}, id="unowned"),
        pytest.param(config_map({}, OF_PLAN), {"labels": OWN, "ownerReferences": None}, id="of the plan"),
        pytest.param(config_map(OWN, OF_PLAN, OF_JOB), {"ownerReferences": [OF_JOB]}, id="also of a Job"),
        pytest.param(config_map(OWN, OF_JOB), {}, id="of a Job"),
    ],
)
def test_change_leaves_the_label_alone(found: Object, change: dict[str, Any]) -> None:
    assert ownership(found, PLAN) == change
