"""Whole upgrades as other tools see them: before a manager has seen the plan, after its end, and in its deletion."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.simulate import Simulate
from tests.support.managers.upgrade import UpgradeRun, condition
from upgrade_manager.api.display import UNSEEN_STATUS
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

#: Of a controller that keeps the deleted plan.
KEEPER = "example.com/keep"


def state(plan: Object) -> str:
    return str(objects.status(plan)["display"]["state"])


def types(plan: Object) -> list[str]:
    return [entry["type"] for entry in objects.status(plan)["conditions"]]


async def assert_unchanged(stage: UpgradeRun, plan: Object) -> None:
    """Check that no manager writes the plan any more."""
    await stage.settle()
    assert objects.resource_version(await stage.plan()) == objects.resource_version(plan)


@pytest.mark.full
@pytest.mark.rule(
    "api: the schema has a status for a plan that no manager has seen",
    "api: the first write replaces the status that the schema sets by default",
    "api: Reconciling is the first condition until the end",
    "api: Reconciling is absent after the end",
    "api: observedGeneration is written with every status",
)
@pytest.mark.servers
async def test_tools_see_the_plan_from_its_creation_to_its_deletion(simulate: Simulate) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        created = await stage.create_plan()
        assert objects.status(created) == objects.status(await stage.plan()) == UNSEEN_STATUS
        async with stage.life():
            await stage.until("ISODownloading")
            assert types(await stage.plan())[0] == "Reconciling"
            plan = await stage.succeed()
            assert types(plan) == ["Available", "Progressing", "Degraded", "Ready"]
            assert condition(plan, "Ready") == ("True", "Succeeded", condition(plan, "Progressing")[2])
            await stage.patch(metadata={"finalizers": [KEEPER]}, spec={"force": True})
            plan = await stage.until_plan(lambda plan: objects.status(plan)["observedGeneration"] == 2)
            assert {entry["observedGeneration"] for entry in objects.status(plan)["conditions"]} == {2}
            await assert_unchanged(stage, plan)
            await stage.client.delete(UPGRADE_PLANS, stage.name)
            plan = await stage.until_plan(lambda plan: state(plan) == "Deleting")
            assert condition(plan, "Ready")[0] == "True"
            await assert_unchanged(stage, plan)
        await stage.patch(metadata={"finalizers": None})
    assert stage.ledger.conflicts == []


#: The fields that managers without them have not written.
FIELDS: dict[str, Any] = {"observedGeneration": None, "display": None}


@pytest.mark.full
@pytest.mark.rule("api: Reconciling is the first condition until the end")
@pytest.mark.servers
@pytest.mark.parametrize("point", ["ClusterUpgrading", "PostDraining"])
@pytest.mark.thin
async def test_plan_of_an_earlier_manager_gets_the_conditions(simulate: Simulate, point: str) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.abandoned(simulation, point)
        conditions = objects.status(await stage.plan())["conditions"]
        kept = [one for one in conditions if one["type"] not in {"Reconciling", "Ready"}]
        fields = MergePatch({"status": {**FIELDS, "conditions": kept}})
        await stage.client.patch(UPGRADE_PLANS, stage.name, fields, subresource="status")
        async with stage.life():
            plan = await stage.until_plan(lambda plan: bool(condition(plan, "Ready")[0]))
            assert types(plan)[0] == "Reconciling"
            assert condition(await stage.succeed(), "Ready")[0] == "True"
