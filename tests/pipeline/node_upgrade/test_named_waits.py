"""The waits of nodes whose Job, hook or Node is not in its usual state: each names its object."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.node_upgrade.test_waits import named, waits
from tests.support.cluster.nodes import OPTIONS, PRE
from upgrade_manager.blockers.known_wait import RemovedJobWait
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, NODES, PROVISIONING_CLUSTERS, Resource
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.informers import UNSEEN_TTL
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun
    from upgrade_manager.kube.resources import Resource


@pytest.mark.rule("blockers: a node that goes down before its turn is named")
async def test_node_that_goes_down_before_its_turn_is_a_wait(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2", "n3")
    await stage.report("n3", ready="False")
    rancher, down = WaitKind.RANCHER, WaitKind.UNAVAILABLE_NODE
    assert list(named(await waits(stage))) == [(down, "n3"), (rancher, "local")]
    await stage.report("n3", ready="True")
    await stage.request("n1", "pre")
    await stage.report("n3", ready="False")
    # No step of n1 is held back while its Job runs.
    assert (down, "n3") in list(named(await waits(stage)))
    await stage.report("n3", ready="True")
    assert (down, "n3") not in list(named(await waits(stage)))


@pytest.mark.rule("blockers: a Job that has failed, and whose Pod does not terminate, is named with the Pod")
async def test_job_that_fails_on_a_ready_node_is_a_wait(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    failing = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}
    await stage.finish("n1", "pre-drain", {"conditions": [failing]})
    wait, _ = await waits(stage)
    assert (wait.kind, wait.name) == (WaitKind.FAILING_JOB, "up-node-upgrade-pre-drain-n1")
    assert (wait.node, wait.detail) == ("n1", "DeadlineExceeded")


async def test_drain_is_a_wait_also_without_its_job(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    await stage.client.delete(JOBS, "up-node-upgrade-pre-drain-n1", namespace="harvester-system")
    (wait,) = await waits(stage)
    assert (wait.kind, wait.name, wait.node) == (WaitKind.DRAIN, "s-n1", "n1")


async def test_withdrawn_hook_of_a_paused_node_is_a_wait_for_rancher(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="UpgradePaused")
    (wait,) = await waits(stage)
    assert (wait.kind, wait.detail) == (WaitKind.RANCHER, "n1: waiting for Rancher to drain it")


async def test_job_whose_removal_is_awaited_is_a_wait(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    name = "up-node-upgrade-pre-drain-n1"
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    await stage.client.patch(JOBS, name, MergePatch(held), namespace="harvester-system")
    await stage.complete("n1", "pre-drain")
    await stage.move(n1="PostDrained")
    await stage.rancher("n1", pre=None)
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: None}}})
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    await stage.run()
    found = [wait for wait in await waits(stage) if isinstance(wait, RemovedJobWait)]
    (wait,) = found
    assert (wait.name, wait.node) == (name, "n1")
    assert wait.detail.endswith("it is being deleted, and its finalizer example.com/held holds it")


@pytest.mark.rule("nodes: the nodes that the cache lacks are listed once for all of them")
async def test_missing_nodes_cost_one_list(stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [f"n{number}" for number in range(20)]
    await stage.begin(*nodes)
    for node in nodes[1:]:
        await stage.client.delete(NODES, node)
    lists: list[str] = []
    original = stage.client.list

    def counted(resource: Resource, **given: Any) -> Any:
        # The cache of a test lists managed nodes itself.
        if given.get("metadata_only") and "label_selector" not in given:
            lists.append(resource.kind)
        return original(resource, **given)

    monkeypatch.setattr(stage.client, "list", counted)
    ctx = await stage.context()
    for _ in range(5):
        result = await stage.phase.run(ctx)
        assert isinstance(result, Waiting)
        assert len([wait for wait in result.waits if wait.kind is WaitKind.MISSING_NODE]) == 19
    assert lists.count("Node") == 1
    await asyncio.sleep(UNSEEN_TTL)
    await stage.phase.run(ctx)
    assert lists.count("Node") == 2


@pytest.mark.rule("blockers: a refused strategy hides no wait of a node that Rancher drains again")
async def test_closed_row_is_named_while_the_strategy_is_refused(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.begin("n1", "n2")
    await stage.move(n1="PostDrained", n2="PostDrained")
    patch = ReconcileContext.patch

    async def refuse(ctx: ReconcileContext, resource: Resource, *args: Any, **more: Any) -> None:
        if resource == PROVISIONING_CLUSTERS:
            raise Forbidden("a webhook refused it")
        await patch(ctx, resource, *args, **more)

    monkeypatch.setattr(ReconcileContext, "patch", refuse)
    await stage.rancher("n1", pre=OPTIONS)
    await stage.report("n2", ready="False")
    result = await stage.phase.exit(await stage.context())
    assert isinstance(result, Waiting)
    assert WaitKind.UNAVAILABLE_NODE in {wait.kind for wait in result.waits}
    assert isinstance(result.error, Forbidden)
