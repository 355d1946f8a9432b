"""Plans that end before all nodes are upgraded: no node changes until the next plan, which continues."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hack.actors.machine_plan import DRAIN_OPTIONS
from hack.simulation import Simulation
from tests.support.cluster.simulate import RepairableScenario, Simulate, fault
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.managers.upgrade import UpgradeRun, condition, started
from upgrade_manager.api.keys import ANNOTATION_ORIGINAL_STRATEGY, FINALIZER, PREFIX
from upgrade_manager.api.keys import ANNOTATION_POST_HOOK as POST
from upgrade_manager.api.keys import ANNOTATION_PRE_HOOK as PRE
from upgrade_manager.facts.drain_hooks import leftover_hook
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import JsonPatch, MergePatch
from upgrade_manager.kube.resources import EVENTS, NODES, PROVISIONING_CLUSTERS, SECRETS
from webhook.catalogue import CHECKS
from webhook.check import Subject
from webhook.cluster import LiveReader
from webhook.runner import run_checks

pytestmark = pytest.mark.full

#: Longer than Rancher needs to upgrade all nodes.
LONG = 1800.0
STRATEGY = {"controlPlaneConcurrency": "2", "workerConcurrency": "1"}
SECOND, LAST = "node-2", "node-1"
RUNBOOK = Path(__file__).parents[3] / "docs/without-manager.md"


async def cluster(simulation: Simulation) -> Object:
    """Return Rancher's cluster."""
    return await simulation.client().get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")


async def strategy(simulation: Simulation) -> Any:
    return objects.spec(await cluster(simulation))["rkeConfig"].get("upgradeStrategy")


async def set_strategy(simulation: Simulation, value: Any) -> None:
    """Set or remove the strategy as a user does."""
    path = {"path": "/spec/rkeConfig/upgradeStrategy"}
    operation = {"op": "remove", **path} if value is None else {"op": "add", **path, "value": value}
    await simulation.client().patch(PROVISIONING_CLUSTERS, "local", JsonPatch([operation]), namespace="fleet-local")


async def nodes(simulation: Simulation) -> dict[str, Any]:
    """Return by node: kubelet, OS, boots and whether it is cordoned."""
    found = (await simulation.client().list(NODES)).items
    return {
        objects.name(node): (
            node["status"]["nodeInfo"]["kubeletVersion"],
            node["status"]["nodeInfo"]["osImage"],
            simulation.hosts.of(objects.name(node)).boots,
            bool(objects.spec(node).get("unschedulable")),
        )
        for node in found
    }


async def frozen_event(simulation: Simulation) -> str:
    """Return the message of the only event on Rancher's cluster about held nodes."""
    events = (await simulation.client().list(EVENTS, namespace="fleet-local")).items
    (event,) = [one for one in events if one["reason"] != "UpgradeOwes"]
    assert (event["type"], event["reason"], event["involvedObject"]["kind"]) == ("Warning", "UpgradeFrozen", "Cluster")
    return str(event["message"])


def runbook_commands() -> list[str]:
    """Return the commands of the runbook for a cluster that goes on without the manager."""
    blocks = re.findall(r"^ *```sh\n(.*?)\n *```", RUNBOOK.read_text(), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks]


async def run_acknowledgement(stage: UpgradeRun, secret: str) -> None:
    """Do what the runbook's last command does."""
    name_, command = runbook_commands()[-1].replace('"$SECRET"', secret).splitlines()
    assert name_ == "SECRET=NAME"
    assert command == leftover_hook(secret)
    get, annotate = command.split(" && ")
    assert get.endswith("-o jsonpath='{.metadata.annotations.rke\\.cattle\\.io/drain-options}')")
    _, _, _, verb, _, _, name, *keys = shlex.split(annotate)
    assert (verb, keys) == ("annotate", [f"{key}=$VALUE" for key in (PRE, POST)])
    found = await stage.client.get(SECRETS, name, namespace="fleet-local")
    value = objects.annotations_of(found)[DRAIN_OPTIONS]
    answers = MergePatch({"metadata": {"annotations": {PRE: value, POST: value}}})
    await stage.client.patch(SECRETS, name, answers, namespace="fleet-local")


def held_secret(text: str, node: str) -> str:
    """Return the Secret whose hook holds the node, from the sentence about it."""
    found = re.search(rf"Node {node} stays cordoned, .* \(Secret fleet-local/([a-z0-9-]+)\)", text)
    assert found, text
    return found[1]


async def assert_frozen(simulation: Simulation) -> None:
    """Check that nothing happens to any node for a long time."""
    # Rancher cordons the next node and sets its pre-drain hook.
    await asyncio.sleep(LONG)
    before = await nodes(simulation)
    await asyncio.sleep(LONG)
    assert await nodes(simulation) == before
    old = simulation.scenario.software.kubernetes
    assert old in {kubelet for kubelet, *_ in before.values()}


async def refusals(simulation: Simulation) -> list[str]:
    """Return the findings of the webhook about the next plan."""
    plan = {"metadata": {"name": "next"}, "spec": {"version": simulation.scenario.release.harvester}}
    results = await run_checks(CHECKS, Subject.of(plan, cluster=LiveReader(simulation.client()), toolkit=TOOLKIT))
    return [finding.message for result in results for finding in result.findings]


async def assert_upgraded(simulation: Simulation) -> None:
    """Check that every node runs the release and is schedulable."""
    release = simulation.scenario.release
    after = await nodes(simulation)
    assert {found[:2] for found in after.values()} == {(release.kubernetes, f"Harvester {release.harvester}")}
    assert not any(cordoned for *_, cordoned in after.values())


async def assert_continued(stage: UpgradeRun, original: Any) -> None:
    """Check that the webhook accepts the next plan, which upgrades all nodes and gives the original strategy back."""
    assert await refusals(stage.simulation) == []
    following = replace(stage, name="next")
    await following.create_plan()
    await following.succeed()
    await assert_upgraded(stage.simulation)
    assert await strategy(stage.simulation) == original
    assert ANNOTATION_ORIGINAL_STRATEGY not in objects.annotations_of(await cluster(stage.simulation))


@pytest.mark.rule(
    "nodes: after a failure the hooks stay until every node runs the release's Kubernetes",
    "nodes: the next plan takes over, and gives the first plan's original strategy back",
)
@pytest.mark.parametrize("step", ["pre-drain", "post-drain"])
@pytest.mark.parametrize("original", [None, STRATEGY], ids=["none", "a strategy"])
@pytest.mark.thin
async def test_failure_freezes_the_cluster(simulate: Simulate, step: str, original: Any) -> None:
    scenario = RepairableScenario.of(**fault(step, SECOND))
    async with simulate(scenario) as simulation:
        if original:
            await set_strategy(simulation, original)
        async with started(simulation) as stage:
            plan = await stage.fail()
            await assert_frozen(simulation)
            assert condition(plan, "Degraded")[:2] == ("True", "UpgradeFailed")
            assert f"Do not uncordon {SECOND}; correct the cause" in condition(plan, "Degraded")[2]
            assert f"1 of 3 nodes upgraded, {SECOND} cordoned" in condition(plan, "Available")[2]
            assert held_secret(str(objects.status(plan)["nextSteps"]), SECOND)
            assert FINALIZER not in objects.finalizers(plan)
            scenario.repair()
            await assert_continued(stage, original)
            assert objects.status(await replace(stage, name="next").plan())["ledger"] == []


@pytest.mark.rule("nodes: no message has a command that upgrades nodes under running VMs; a page has it")
async def test_commands_of_the_runbook_release_the_cluster(simulate: Simulate) -> None:
    async with simulate(RepairableScenario.of(**fault("pre-drain", SECOND))) as simulation:
        await set_strategy(simulation, STRATEGY)
        async with started(simulation) as stage:
            plan = await stage.fail()
            texts = str(objects.status(plan))
            assert "annotate" not in texts
            assert "upgradeStrategy" not in texts.partition("'ledger'")[0]
            steps = objects.status(plan)["nextSteps"]
            assert steps[-1]["text"].endswith(f"read docs/{RUNBOOK.name} in the manager's repository first")
            _, delete, read, removal, patch, _ = runbook_commands()
            assert delete == "kubectl delete upgradeplans.management.harvesterhci.io PLAN"
            assert '"op":"remove"' in removal
            path = ANNOTATION_ORIGINAL_STRATEGY.replace(".", r"\.")
            assert shlex.split(read)[-1] == f"jsonpath={{.metadata.annotations.{path}}}"
            record = json.loads(objects.annotations_of(await cluster(simulation))[ANNOTATION_ORIGINAL_STRATEGY])
            *kubectl, body = shlex.split(patch.replace("ORIGINAL", json.dumps(record["upgradeStrategy"])))
            target = ["patch", "clusters.provisioning.cattle.io", "local", "--type=json", "-p"]
            assert kubectl == ["kubectl", "-n", "fleet-local", *target]
            await stage.client.patch(
                PROVISIONING_CLUSTERS, "local", JsonPatch(json.loads(body)), namespace="fleet-local"
            )
            assert await strategy(simulation) == STRATEGY
            await run_acknowledgement(stage, held_secret(str(steps), SECOND))
            await asyncio.sleep(LONG)
        kubelets = {kubelet for kubelet, *_ in (await nodes(simulation)).values()}
        assert kubelets == {simulation.scenario.release.kubernetes}


@pytest.mark.rule("nodes: after a deletion the hooks stay, and a Warning event on Rancher's cluster says so")
@pytest.mark.parametrize("point", ["PreDraining", "PostDraining", "WaitingReboot"])
@pytest.mark.parametrize("original", [None, STRATEGY], ids=["none", "a strategy"])
@pytest.mark.thin
async def test_deletion_freezes_the_cluster(simulate: Simulate, point: str, original: Any) -> None:
    async with simulate() as simulation:
        if original:
            await set_strategy(simulation, original)
        async with started(simulation) as stage:
            await stage.until_node(point)
            await stage.delete()
            await assert_frozen(simulation)
            message = await frozen_event(simulation)
            (held,) = [name for name, (*_, is_cordoned) in (await nodes(simulation)).items() if is_cordoned]
            assert held_secret(message, held)
            await assert_continued(stage, original)


NEXT_END = "UpgradePlan next ended before it continued the node upgrade of an earlier plan. "


async def end_next_plan(stage: UpgradeRun, *, held: str, deleted: bool) -> str:
    """Let the next plan end before its node upgrade, and return its message."""
    following = replace(stage, name="next")
    if deleted:
        await following.create_plan()
        await following.until("ImagePreloading")
        await following.delete()
    else:
        await following.create_plan(annotations={f"{PREFIX}/min-certs-expiration-in-day": "0"})
        plan = await following.fail()
        message = str(objects.status(plan)["nextSteps"])
        assert "min-certs-expiration-in-day" in condition(plan, "Degraded")[2]
        await following.delete()
    events = (await stage.client.list(EVENTS, namespace="fleet-local")).items
    (event,) = [str(event["message"]) for event in events if "UpgradePlan next" in event["message"]]
    assert event.startswith(NEXT_END)
    assert deleted or held_secret(event, held) in message
    return event


@pytest.mark.rule("nodes: a next plan that ends before its node upgrade names the nodes that an earlier plan holds")
@pytest.mark.parametrize("deleted", [True, False], ids=["deleted", "failed"])
@pytest.mark.parametrize("first", ["kept", "deleted"])
@pytest.mark.thin
async def test_early_end_of_next_plan_names_held_nodes(simulate: Simulate, first: str, *, deleted: bool) -> None:
    scenario = RepairableScenario.of(**fault("pre-drain", SECOND))
    async with simulate(scenario) as simulation:
        await set_strategy(simulation, STRATEGY)
        async with started(simulation) as stage:
            await stage.fail()
            if first == "deleted":
                await stage.delete()
            message = await end_next_plan(stage, held=SECOND, deleted=deleted)
            way = "Create" if deleted else "Retry it, or create"
            assert f"{way} a new UpgradePlan, which takes over" in message
            await assert_frozen(simulation)
            scenario.repair()
            await assert_continued(stage, STRATEGY)


async def test_early_end_in_a_free_cluster_reports_no_nodes(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until("ImagePreloading")
        await stage.delete()
        assert (await stage.client.list(EVENTS, namespace="fleet-local")).items == []


@pytest.mark.rule("nodes: everything is given back at once when all nodes agree")
@pytest.mark.thin
async def test_cluster_is_released_when_all_nodes_agree(simulate: Simulate) -> None:
    scenario = RepairableScenario.of(**fault("post-drain", LAST))
    async with simulate(scenario) as simulation, started(simulation) as stage:
        plan = await stage.fail()
        assert await strategy(simulation) is None
        assert objects.status(plan)["ledger"] == []
        assert ANNOTATION_ORIGINAL_STRATEGY not in objects.annotations_of(await cluster(simulation))
        before = {name: found[:3] for name, found in (await nodes(simulation)).items()}
        await asyncio.sleep(LONG)
        assert {name: found[:3] for name, found in (await nodes(simulation)).items()} == before
        scenario.repair()
        await assert_continued(stage, None)


@pytest.mark.rule("nodes: after a deletion the event names held nodes, Secrets and the page")
@pytest.mark.parametrize("point", ["PostDraining", "WaitingReboot"])
async def test_deletion_at_the_last_node_names_it(simulate: Simulate, point: str) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_node(point, node=LAST)
        await stage.delete()
        # Rancher has set the hook already, so its strategy is given back.
        assert await strategy(simulation) is None
        await asyncio.sleep(LONG)
        assert [name for name, (*_, is_cordoned) in (await nodes(simulation)).items() if is_cordoned] == [LAST]
        message = await frozen_event(simulation)
        if point == "PostDraining":
            message = await end_next_plan(stage, held=LAST, deleted=False)
        await run_acknowledgement(stage, held_secret(message, LAST))
        await asyncio.sleep(LONG)
        assert not any(is_cordoned for *_, is_cordoned in (await nodes(simulation)).values())
