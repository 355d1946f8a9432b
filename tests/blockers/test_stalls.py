"""Whole upgrades that are held up: the object is named, and the upgrade goes on once it is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.simulation import Simulation
from tests.support.managers.upgrade import condition, started
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, PODS

if TYPE_CHECKING:
    from tests.support.managers.upgrade import UpgradeRun
    from upgrade_manager.kube.objects import Object


PLACE = "harvester-system"
JOB = "batch.kubernetes.io/job-name=upgrade-cluster-upgrade"


async def close(stage: UpgradeRun, *, on: bool) -> None:
    """Set a taint on all nodes that no Pod tolerates, or remove it."""
    taints = [{"key": "example.com/closed", "effect": "NoSchedule"}] if on else None
    for node in (await stage.client.list(NODES)).items:
        await stage.client.patch(NODES, objects.name(node), MergePatch({"spec": {"taints": taints}}))


def is_stalled(plan: Object) -> bool:
    return objects.is_condition_true(plan, "Stalled")


@pytest.mark.full
@pytest.mark.rule("blockers: a Pod that cannot be scheduled is named until it runs")
async def test_unschedulable_pod_is_named_until_it_runs() -> None:
    async with Simulation() as simulation, started(simulation) as stage:
        await stage.until("ClusterUpgrading")
        # The Job follows once KubeVirt's updates of VMs are suspended.
        await stage.until_plan(lambda plan: "attempt 1 of 3" in condition(plan, "Progressing")[2])
        await close(stage, on=True)
        # The Job controller creates another one.
        await stage.client.delete_collection(PODS, namespace=PLACE, label_selector=JOB)
        plan = await stage.until_plan(is_stalled)
        (blocker,) = objects.status(plan)["blockers"]
        assert (blocker["kind"], blocker["reason"]) == ("Pod", "PodUnschedulable")
        assert blocker["remedy"].endswith(f" Show its events: kubectl describe pod -n {PLACE} {blocker['name']}")
        assert condition(plan, "Stalled")[:2] == ("True", "PodUnschedulable")
        shown = f"Job {PLACE}/upgrade-cluster-upgrade: attempt 2 of 3; the last attempt failed; {blocker['message']}"
        assert condition(plan, "Progressing")[2] == shown
        await close(stage, on=False)
        plan = await stage.until_plan(lambda plan: not is_stalled(plan), seconds=30)
        assert "blockers" not in objects.status(plan)
        assert blocker["message"] not in condition(plan, "Progressing")[2]
        await stage.succeed()
        reasons = [event["reason"] for event in await stage.events()]
        assert (reasons.count("PodUnschedulable"), reasons.count("BlockerCleared")) == (1, 1)


@pytest.mark.full
@pytest.mark.rule(
    "blockers: Pods that one cause holds up are one blocker, with the remedies of all",
    "blockers: a blocker of several objects goes on while one of them is held up",
)
async def test_pods_of_one_cause_are_one_blocker_until_the_last_runs() -> None:
    async with Simulation() as simulation, started(simulation) as stage:
        await stage.until("ImagePreloading")
        await close(stage, on=True)
        # The Job controller creates others.
        await stage.client.delete_collection(PODS, namespace="cattle-system", label_selector="upgrade.cattle.io/plan")
        plan = await stage.until_plan(lambda plan: len(blocked(plan).get("others") or ()) == 2)
        first = blocked(plan)
        text = "3 Pods on node-0, node-1, node-2 cannot be scheduled: taint example.com/closed"
        assert first["message"] == text
        # One clause of what Progressing waits for, and one of what holds that up.
        assert condition(plan, "Progressing")[2].startswith("Images loaded on 0 of 3 nodes")
        assert condition(plan, "Progressing")[2].endswith(f"; {text}")
        assert [one.get("undo", "") for one in first["remedies"]] == [
            *(f"kubectl taint node node-{number} example.com/closed:NoSchedule" for number in range(3)),
            "",
        ]
        await stage.client.patch(NODES, "node-0", MergePatch({"spec": {"taints": None}}))
        plan = await stage.until_plan(lambda plan: len(blocked(plan).get("others") or ()) == 1)
        assert blocked(plan)["message"].startswith("2 Pods on node-1, node-2 ")
        assert blocked(plan)["since"] == first["since"]
        assert "BlockerCleared" not in [event["reason"] for event in await stage.events()]
        await close(stage, on=False)
        await stage.succeed()
        reasons = [event["reason"] for event in await stage.events()]
        assert (reasons.count("BlockerCleared"), reasons.count("StillChanged")) == (1, 3)
        undo = "kubectl taint node node-2 example.com/closed:NoSchedule"
        plan = await stage.plan()
        assert undo in [step["command"] for step in objects.status(plan)["nextSteps"]]
        assert (
            "3 changes that remedies advised were not given back at the end; see nextSteps"
            in condition(plan, "Progressing")[2]
        )


def blocked(plan: Object) -> Object:
    """Return the only blocker; empty unless there is one."""
    found = objects.status(plan).get("blockers") or []
    return found[0] if len(found) == 1 else {}
