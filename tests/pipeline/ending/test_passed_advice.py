"""Changes that a failed plan has advised pass to the next plan, and are named when the plan is deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.blockers.test_stalls import blocked, close
from tests.pipeline.ending.test_advice import CORDONED, TAINTED, UNDO, WEBHOOK
from tests.pipeline.ending.test_passing_on import CHECKED, deleted
from tests.pipeline.settings.test_rancher import local
from tests.support.cluster.simulate import SECOND, RepairableScenario, Simulate, fault
from tests.support.managers.upgrade import started
from upgrade_manager.api.advised import MAX_ADVISED
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES, PODS, UPGRADE_PLANS
from upgrade_manager.pipeline.ending import passing_on

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester

pytestmark = pytest.mark.sampled


def plan(phase: str, *advised: dict[str, Any]) -> dict[str, Any]:
    return {"status": {"currentPhase": phase, "advised": [*advised]}}


@pytest.mark.rule("blockers: what a failed plan has advised passes to the next plan, which names it at its end")
@pytest.mark.parametrize(
    ("others", "found"),
    [
        pytest.param([], None, id="no other plan"),
        pytest.param([plan("Failed"), {}], None, id="nothing advised"),
        pytest.param([{}, plan("Failed", CORDONED)], [CORDONED], id="failed"),
        pytest.param(
            [plan("Failed", CORDONED), plan("Failed", {**CORDONED, "original": "1"}, TAINTED)],
            [CORDONED, TAINTED],
            id="first original stays",
        ),
        pytest.param(
            [plan("Failed", *({**CORDONED, "name": f"n{number}"} for number in range(MAX_ADVISED + 1)))],
            [{**CORDONED, "name": f"n{number}"} for number in range(MAX_ADVISED)],
            id="bounded",
        ),
    ],
)
def test_advice_of_failed_plans_is_copied(others: list[Any], found: object) -> None:
    assert passing_on.inherited_advice(others) == found


@pytest.mark.rule("blockers: what a failed plan has advised passes to the next plan, which names it at its end")
async def test_only_the_copy_counts(cluster: Harvester) -> None:
    earlier = cluster.context(await cluster.plan("earlier", status={"currentPhase": "Failed", "advised": [CORDONED]}))
    done = cluster.context(await cluster.plan("done", status={"currentPhase": "Succeeded", "advised": [TAINTED]}))
    following = cluster.context(await cluster.plan("next", status=CHECKED))
    assert await passing_on.release(following, [earlier, done])
    assert objects.status(following.raw)["advised"] == [CORDONED]
    found = await cluster.client.get(UPGRADE_PLANS, "earlier")
    assert "advised" not in objects.status(found)
    assert objects.condition(found, "Degraded")["message"] == "UpgradePlan next has taken over. It failed"


@pytest.mark.rule("blockers: what a plan has advised is named when the plan is deleted before it has succeeded")
async def test_deletion_names_what_is_still_changed(cluster: Harvester) -> None:
    await local(cluster)
    await cluster.put(NODES, {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}})
    status = {"currentPhase": "NodeUpgrading", "advised": [CORDONED, TAINTED, WEBHOOK]}
    ctx = cluster.context(await cluster.plan(status=status))
    await passing_on.leave(ctx)
    assert cluster.recorder.recorded == []
    await passing_on.leave(deleted(ctx))
    texts = [message for reason, message in cluster.recorder.recorded if reason == "UpgradeOwes"]
    deleted_, advised = "UpgradePlan up was deleted before it succeeded.", "A remedy advised to change it: "
    give_back = f"{advised}if you changed it for the upgrade, give it back, once an upgrade has succeeded: "
    assert texts == [
        f"{deleted_} Node n1: spec.taints is not as it was. {give_back}{UNDO}",
        f"{deleted_} Webhook p.example.com: no configuration lists it. {give_back}{WEBHOOK['undo']}",
    ]
    # Nothing is owed by the manager, so that the Cluster is not written.
    assert ctx.writes == []


@pytest.mark.rule("blockers: what a failed plan has advised passes to the next plan, which names it at its end")
async def test_next_plan_names_what_a_failed_one_advised(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**fault("post-drain", SECOND))
    async with simulate(scenario) as simulation, started(simulation) as stage:
        await stage.until("ImagePreloading")
        await close(stage, on=True)
        # The Job controller creates others, which are not scheduled.
        await stage.client.delete_collection(PODS, namespace="cattle-system", label_selector="upgrade.cattle.io/plan")
        await stage.until_plan(lambda plan: len(blocked(plan).get("others") or ()) == 2)
        await close(stage, on=False)
        failed = await stage.fail()
        undos = [f"kubectl taint node node-{number} example.com/closed:NoSchedule" for number in range(3)]
        steps = [step.get("command") for step in objects.status(failed)["nextSteps"]]
        assert [command for command in steps if command in undos] == undos
        scenario.repair()
        following = replace(stage, name="next")
        await following.create_plan()
        done = await following.succeed()
        assert [step["command"] for step in objects.status(done)["nextSteps"]] == undos
        assert "advised" not in objects.status(await stage.plan())
