"""Debts of a plan that ends early are named, and pass to the next plan."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from structlog.testing import capture_logs

from hack.apiserver.call import Call
from hack.faults.middleware import NoHook
from hack.simulation import Simulation
from tests.pipeline.ending.test_settlement import SINCE, stopped, vm
from tests.pipeline.settings.test_rancher import local, stored
from tests.support.cluster.harvester import Harvester
from tests.support.cluster.simulate import SECOND, RepairableScenario, Simulate, fault
from tests.support.managers.upgrade import BY_VERSION, condition, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import ANNOTATION_LEDGER, JobType
from upgrade_manager.api.ledger import PASSED, LedgerKind, new_entry, of_kind, recorded_entries
from upgrade_manager.api.next_steps import MAX_NODES
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS, JOBS, NODES, PROVISIONING_CLUSTERS, UPGRADE_PLANS
from upgrade_manager.kube.transport import Response
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending import passing_on
from upgrade_manager.pipeline.settings import left_entries
from upgrade_manager.resources.jobs import node_job

TAINTED = [new_entry(LedgerKind.TAINT, name, object_=f"Node {name}", node=name, since=SINCE) for name in ("n1", "n2")]
SETTING = new_entry(LedgerKind.SETTING, "x", object_="Setting a/b", field="value", original="1", since=SINCE)
KEEPS = Remedy(
    "Node n1 keeps the taint kubevirt.io/drain, with which no VM runs there. The next attempt or UpgradePlan continues "
    "with it; where none follows",
    command="kubectl taint node n1 kubevirt.io/drain-",
)
OFF = Remedy("VMs that were stopped for the upgrade are off; start them: default/off")
#: Harvester v1.9, which does not remove the taint from Ready nodes.
KEEPING: dict[str, Any] = {"harvester": {"node_down": False}}
#: The status of a plan that has passed its checks.
CHECKED: dict[str, Any] = {
    "currentPhase": "ISODownloading",
    "phaseTransitionTimestamps": [{"phase": "Initialized", "phaseTransitionTimestamp": SINCE}],
    "ledger": [],
}
REACHED = [{"phase": "NodeUpgrading", "phaseTransitionTimestamp": SINCE}]


async def owing(cluster: Harvester, name: str = "up", **status: Any) -> ReconcileContext:
    """Create a plan that was draining node n1, which keeps its taint, and has stopped a VM."""
    entries = [*TAINTED, stopped("off"), SETTING]
    return cluster.context(await cluster.plan(name, status={"ledger": entries, **status}))


def deleted(ctx: ReconcileContext) -> ReconcileContext:
    """Let the plan be deleted."""
    metadata = {**objects.metadata(ctx.raw), "deletionTimestamp": SINCE}
    ctx.raw = {**ctx.raw, "metadata": metadata}
    return ctx


async def drained(cluster: Harvester) -> None:
    await cluster.nodes("n1", "n2")
    taints = [{"key": "kubevirt.io/drain", "effect": "NoSchedule"}]
    await cluster.client.patch(NODES, "n1", MergePatch({"spec": {"taints": taints}}))
    await vm(cluster, "off", strategy="Halted")


@pytest.mark.rule("nodes: a plan that ends during a drain names the taint that stays, and VMs that are off")
async def test_taints_and_vms_are_named(cluster: Harvester) -> None:
    await drained(cluster)
    ctx = await owing(cluster)
    assert await passing_on.owed(ctx) == [KEEPS, OFF]
    assert ledger.entries(ctx) == [TAINTED[0], stopped("off"), SETTING]


async def test_nothing_is_read_without_entries(cluster: Harvester) -> None:
    assert await passing_on.owed(cluster.context(await cluster.plan())) == []
    assert await passing_on.owed(cluster.context(await cluster.plan("left", status={"ledger": [TAINTED[1]]}))) == []


@pytest.mark.rule("nodes: the next plan that passes its checks copies what passes on, and only its copy counts")
async def test_entries_pass_to_the_next_plan(cluster: Harvester) -> None:
    message = {"type": "Progressing", "status": "False", "reason": "Failed", "message": "no space. Log: kubectl logs x"}
    message["lastTransitionTime"] = SINCE
    degraded = {**message, "type": "Degraded", "status": "True", "reason": "UpgradeFailed", "message": "Run kubectl x"}
    ended = {"currentPhase": "Failed", "conditions": [message, degraded], "phaseTransitionTimestamps": REACHED}
    earlier = await owing(cluster, "earlier", **ended)
    early = cluster.context(await cluster.plan("early", status={"currentPhase": "Failed", "conditions": [degraded]}))
    running = await owing(cluster, "running", currentPhase="CleaningUp")
    plans = [earlier.raw, early.raw, running.raw]
    assert passing_on.inherited(plans) == [*TAINTED, stopped("off")]
    unchecked = cluster.context(await cluster.plan("unchecked", status={"currentPhase": "Initializing"}))
    assert not await passing_on.release(unchecked, [earlier])
    assert ledger.entries(unchecked) == []
    ctx = cluster.context(await cluster.plan("next", status=CHECKED))
    for _ in range(2):
        others = [cluster.context(await cluster.client.get(UPGRADE_PLANS, name)) for name in ("earlier", "early")]
        await passing_on.release(ctx, [*others, running, ctx])
    assert ledger.entries(ctx) == [*TAINTED, stopped("off")]
    found = [await cluster.client.get(UPGRADE_PLANS, name) for name in ("earlier", "early", "running")]
    assert objects.status(found[0])["ledger"] == [SETTING]
    degraded = objects.condition(found[0], "Degraded")
    assert degraded["reason"] == "TakenOver"
    # The command is at the end, where it is copied whole.
    assert degraded["message"] == "UpgradePlan next has taken over. no space. Log: kubectl logs x"
    assert objects.condition(found[1], "Degraded")["message"] == "Run kubectl x"
    assert objects.status(found[2])["ledger"] == [*TAINTED, stopped("off"), SETTING]


async def test_taints_of_many_nodes_have_one_command(cluster: Harvester) -> None:
    nodes = [f"n{number:02}" for number in range(MAX_NODES + 2)]
    await cluster.nodes(*nodes)
    for node in nodes:
        taints = [{"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}]
        await cluster.client.patch(NODES, node, MergePatch({"spec": {"taints": taints}}))
    ledger = [new_entry(LedgerKind.TAINT, node, object_=f"Node {node}", node=node, since=SINCE) for node in nodes]
    found = await passing_on.owed(cluster.context(await cluster.plan(status={"ledger": ledger})))
    assert len(found) == MAX_NODES + 1
    assert found[-1] == Remedy(
        "And 2 more nodes keep it", command=f"kubectl taint node {nodes[-2]} {nodes[-1]} kubevirt.io/drain-"
    )


@pytest.mark.rule("nodes: a deleted plan leaves what it owes in an annotation of Rancher's Cluster, and in an event")
async def test_deleted_plan_leaves_its_entries_on_the_cluster(cluster: Harvester) -> None:
    await drained(cluster)
    await local(cluster)
    ctx = await owing(cluster)
    await passing_on.leave(ctx)
    assert ANNOTATION_LEDGER not in objects.annotations_of(await stored(cluster))
    for _ in range(2):
        await passing_on.leave(deleted(ctx))
    found = await stored(cluster)
    assert json.loads(objects.annotations_of(found)[ANNOTATION_LEDGER]) == [TAINTED[0], stopped("off")]
    assert left_entries.read(found) == [TAINTED[0], stopped("off")]
    texts = [f"UpgradePlan up was deleted before it succeeded. {step}" for step in (OFF.text, KEEPS)]
    assert set(cluster.recorder.recorded) == {("UpgradeOwes", text) for text in texts}


async def test_without_a_cluster_nothing_is_left(cluster: Harvester) -> None:
    await drained(cluster)
    ctx = await owing(cluster)
    await passing_on.leave(deleted(ctx))
    assert ctx.writes == []


@pytest.mark.rule("nodes: VMs that Jobs may stop after the end of their plan pass to the next plan")
@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "failed"])
async def test_vms_of_running_jobs_pass_on(cluster: Harvester, *, is_deleted: bool) -> None:
    await local(cluster)
    ctx = cluster.context(await cluster.plan(status={"phaseTransitionTimestamps": REACHED}))
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "n1")):
        await vm(cluster, name, strategy="Always", phase="Running", node=node)
    for node, job_type, status in (
        ("n1", JobType.PRE_DRAIN, {"active": 1}),
        ("n2", JobType.POST_DRAIN, {"active": 1}),
        ("n2", JobType.PRE_DRAIN, {}),
    ):
        job = node_job(ctx.owner, ctx.job_settings, node=node, job_type=job_type, request="1")
        await cluster.put(JOBS, job, status=status)
    await passing_on.leave(deleted(ctx) if is_deleted else ctx)
    assert [entry["object"] for entry in ledger.entries(ctx)] == [f"VirtualMachine default/{name}" for name in "ac"]
    text = "UpgradePlan up was deleted before it succeeded. Jobs that still run may stop VMs of nodes n1: "
    assert cluster.recorder.recorded == ([("UpgradeOwes", f"{text}default/a, default/c")] if is_deleted else [])


@pytest.mark.rule("nodes: a deleted plan leaves what it owes in an annotation of Rancher's Cluster, and in an event")
@pytest.mark.servers
@pytest.mark.real_full
async def test_deleted_plan_of_a_single_node_passes_its_vms_on(simulate: Simulate) -> None:
    async with simulate("one-node") as simulation, started(simulation) as stage:
        await stage.until_node("SingleNodeUpgrading")
        await stage.delete()
        await stage.until("deleted")
        following = replace(stage, name="next")
        await following.create_plan({**BY_VERSION, "force": True})
        done = await following.succeed()
        cluster = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
        assert ANNOTATION_LEDGER not in objects.annotations_of(cluster)
        assert objects.status(done)["ledger"] == []
        assert "VMs that were stopped for the upgrade are off; start them: default/" in str(objects.status(done))


@pytest.mark.parametrize("text", ["", "{", "7", json.dumps([{**TAINTED[0], "since": "soon"}, SETTING])])
def test_invalid_annotation_has_no_entries(text: str) -> None:
    assert left_entries.read({"metadata": {"annotations": {ANNOTATION_LEDGER: text}}}) == []


async def taints(simulation: Simulation) -> list[str]:
    """Return the nodes with the taint of a drain."""
    nodes = (await simulation.client().list(NODES)).items
    return [
        objects.name(node)
        for node in nodes
        if any(one["key"] == "kubevirt.io/drain" for one in objects.spec(node).get("taints") or [])
    ]


@pytest.mark.full
@pytest.mark.rule(
    "nodes: a plan that ends during a drain names the taint that stays, and VMs that are off",
    "nodes: the next plan that passes its checks copies what passes on, and only its copy counts",
)
@pytest.mark.servers
async def test_failed_plan_passes_its_taint_on(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**fault("post-drain", SECOND), **KEEPING)
    async with simulate(scenario) as simulation, started(simulation) as stage:
        plan = await stage.fail()
        assert await taints(simulation) == [SECOND]
        command = f"kubectl taint node {SECOND} kubevirt.io/drain-"
        assert command in [step.get("command") for step in objects.status(plan)["nextSteps"]]
        assert {entry["kind"] for entry in objects.status(plan)["ledger"]} >= {"Taint", "Strategy"}
        scenario.repair()
        following = replace(stage, name="next")
        await following.create_plan()
        done = await following.succeed()
        assert (await taints(simulation), objects.status(done)["ledger"]) == ([], [])
        ended = await stage.plan()
        assert condition(ended, "Degraded")[2].startswith("UpgradePlan next has taken over. ")
        assert "nextSteps" not in objects.status(ended)


@pytest.mark.full
@pytest.mark.rule("nodes: a deleted plan leaves what it owes in an annotation of Rancher's Cluster, and in an event")
@pytest.mark.servers
@pytest.mark.real_full
async def test_deleted_plan_passes_its_taint_on(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**KEEPING)) as simulation, started(simulation) as stage:
        await stage.until_node("PreDrained")
        assert await taints(simulation) != []
        await stage.delete()
        await stage.until("deleted")
        cluster = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
        assert "Taint" in [entry["kind"] for entry in left_entries.read(cluster)]
        events = (await stage.client.list(EVENTS, namespace="fleet-local")).items
        owed = [one["message"] for one in events if one["reason"] == "UpgradeOwes"]
        assert [message for message in owed if "kubectl taint node" in message] != []
        following = replace(stage, name="next")
        await following.create_plan()
        done = await following.succeed()
        cluster = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
        assert ANNOTATION_LEDGER not in objects.annotations_of(cluster)
        assert (await taints(simulation), objects.status(done)["ledger"]) == ([], [])


@pytest.mark.full
@pytest.mark.rule("nodes: a failed plan that is deleted leaves what it owes in the same way")
@pytest.mark.servers
@pytest.mark.real_full
async def test_deleted_failed_plan_passes_its_taint_on(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**fault("post-drain", SECOND), **KEEPING)
    async with simulate(scenario) as simulation, started(simulation) as stage:

        async def left() -> list[str]:
            cluster = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
            return [entry["kind"] for entry in left_entries.read(cluster)]

        await stage.fail()
        await stage.settle()
        assert objects.finalizers(await stage.plan()) == []
        await stage.delete()
        assert "Taint" in (await eventually(left, seconds=60) or [])
        events = (await stage.client.list(EVENTS, namespace="fleet-local")).items
        owed = [one["message"] for one in events if one["reason"] == "UpgradeOwes"]
        assert [message for message in owed if "kubectl taint node" in message] != []
        scenario.repair()
        following = replace(stage, name="next")
        await following.create_plan()
        done = await following.succeed()
        assert (await left(), await taints(simulation), objects.status(done)["ledger"]) == ([], [], [])


@pytest.mark.full
@pytest.mark.rule("nodes: debts of a deleted plan that cannot be kept hold up no plan of its name")
async def test_refused_debts_hold_up_no_plan_of_the_same_name() -> None:
    scenario = RepairableScenario.of(**fault("post-drain", SECOND), **KEEPING)
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await stage.fail()
        await stage.settle()
        # A webhook of Rancher is down.
        allow = stage.refuse("patch", "clusters.provisioning.*", status=500, reason="InternalError")
        scenario.repair()
        await stage.delete()
        await stage.create_plan()
        await stage.until("ImagePreloading")
        allow()
        await stage.succeed()


async def test_refused_annotation_of_a_deleted_plan_is_logged(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    await drained(cluster)
    await local(cluster)
    monkeypatch.setattr(ReconcileContext, "mark", AsyncMock(side_effect=Forbidden("no")))
    with capture_logs() as logs:
        await passing_on.leave_all(await owing(cluster, currentPhase="Failed"))
    assert [one["error"] for one in logs if one["event"] == "debts of a deleted plan not kept"] == ["no"]
    assert {reason for reason, _ in cluster.recorder.recorded} == {"UpgradeOwes"}


class LosingAcceptance(NoHook):
    """Loses the response to the write that accepts a plan, once."""

    def __init__(self, plan: str) -> None:
        self._path = f"{plan}/status"
        self.is_lost = False

    async def after(self, number: int, call: Call, response: Response) -> None:
        _ = number
        if call.path.endswith(self._path) and not self.is_lost and b"Initializing" in response.body:
            self.is_lost = True
            raise Transient("the response was lost")


@pytest.mark.rule("nodes: the next plan that passes its checks copies what passes on, and only its copy counts")
@pytest.mark.full
async def test_lost_response_to_the_acceptance_leaves_no_copy(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**fault("post-drain", SECOND), **KEEPING)
    async with simulate(scenario) as simulation, started(simulation) as stage:
        await stage.fail()
        scenario.repair()
        losing = simulation.middleware.hook = LosingAcceptance("next")
        following = replace(stage, name="next")
        await following.create_plan()
        await following.until("ISODownloading")
        assert losing.is_lost
        plan = await stage.plan()
        assert of_kind(recorded_entries(objects.status(plan)), *PASSED) == []
        assert condition(plan, "Degraded")[2].startswith("UpgradePlan next has taken over. ")


class ChangingEarlier(NoHook):
    """Changes the earlier plan once the next one is accepted, just before the manager releases what it owes."""

    def __init__(self, simulation: Simulation, *, earlier: str, following: str) -> None:
        self._client = simulation.client()
        self._earlier, self._following = earlier, f"{following}/status"
        self._is_accepted = self.is_changed = False

    async def before(self, number: int, call: Call) -> None:
        _ = number
        if self._is_accepted and not self.is_changed and call.is_write and call.name == self._earlier:
            self.is_changed = True
            await self._client.patch(UPGRADE_PLANS, self._earlier, MergePatch({"metadata": {"labels": {"team": "a"}}}))

    async def after(self, number: int, call: Call, response: Response) -> None:
        _ = number
        self._is_accepted |= call.is_write and call.path.endswith(self._following) and b"Initializing" in response.body


@pytest.mark.rule("nodes: the next plan that passes its checks copies what passes on, and only its copy counts")
@pytest.mark.full
async def test_plan_that_changes_meanwhile_is_released_later(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**fault("post-drain", SECOND), **KEEPING)
    async with simulate(scenario) as simulation, started(simulation) as stage:
        await stage.fail()
        scenario.repair()
        changing = simulation.middleware.hook = ChangingEarlier(simulation, earlier=stage.name, following="next")
        following = replace(stage, name="next")
        await following.create_plan()
        await following.until("RepoCreating")
        assert changing.is_changed
        plan = await stage.plan()
        assert of_kind(recorded_entries(objects.status(plan)), *PASSED) == []
        assert condition(plan, "Degraded")[2].startswith("UpgradePlan next has taken over. ")
