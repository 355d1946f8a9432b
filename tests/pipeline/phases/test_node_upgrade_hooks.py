"""The node upgrade in clusters that are not in order, or change meanwhile."""

from __future__ import annotations

import json

import pytest

from tests.support.node_upgrade import COMPLETE, OPTIONS, POST, POST_DRAIN, PRE, PRE_DRAIN, NodeUpgradeRun
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, MACHINES, NODES, SECRETS
from upgrade_manager.pipeline.errors import BadCluster, ForeignObject
from upgrade_manager.pipeline.phases.base import Completed
from upgrade_manager.resources.jobs import JobSettings, node_job
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.toolkit import ToolkitImage


@pytest.mark.rule("nodes: only Secrets of type machine-plan in fleet-local carry hooks")
@pytest.mark.parametrize(
    ("namespace", "type_"),
    [
        pytest.param("fleet-local", "Opaque", id="of another type"),
        pytest.param("harvester-system", "rke.cattle.io/machine-plan", id="elsewhere"),
    ],
)
async def test_other_secrets_are_ignored(stage: NodeUpgradeRun, namespace: str, type_: str) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    labels = {"rke.cattle.io/machine-name": "m-n1"}
    annotations = {PRE_DRAIN: OPTIONS, POST_DRAIN: OPTIONS}
    metadata = {"name": "stray", "namespace": namespace, "labels": labels, "annotations": annotations}
    await stage.cluster.put(SECRETS, {"metadata": metadata, "type": type_, "data": {}})
    await stage.run()
    assert await stage.cluster.names(JOBS) == []
    ctx = await stage.context()
    for node in ("n1", "n2"):
        ctx.status.move_node(node, NodeState.POST_DRAINED)
    await ctx.persist()
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: acknowledgements of an earlier upgrade are removed before the Rancher cluster is patched")
async def test_old_acknowledgements_are_removed_before_the_start(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    left = MergePatch({"metadata": {"annotations": {PRE: OPTIONS, POST: OPTIONS, "other": "x"}}})
    await stage.cluster.client.patch(SECRETS, "s-n1", left, namespace="fleet-local")
    await stage.enter()
    await stage.run()
    secret = await stage.cluster.find(SECRETS, "s-n1", "fleet-local")
    assert objects.annotations_of(secret) == {"other": "x"}


@pytest.mark.rule("nodes: acknowledgements of an earlier upgrade are removed before the Rancher cluster is patched")
async def test_own_acknowledgement_stays_after_a_crash(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    await stage.run(record=False)
    await stage.finish("n1", "pre-drain", COMPLETE)
    await stage.run(record=False)
    await stage.run(record=False)
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


@pytest.mark.rule("nodes: a pending hook that does not name the manager's hook is not acknowledged")
async def test_hook_of_the_built_in_flow_is_not_acknowledged(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.rancher("n1", pre=json.dumps({"preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}]}))
    await stage.run()
    assert await stage.cluster.names(JOBS) == []


@pytest.mark.rule("nodes: a node that leaves is logged and blocks nothing")
async def test_deleted_node_does_not_block_the_phase(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    ctx = await stage.context()
    ctx.status.move_node("n1", NodeState.POST_DRAINED)
    await ctx.persist()
    await stage.cluster.client.delete(NODES, "n2")
    assert await stage.run() == Completed()


@pytest.mark.rule("nodes: a node that joins is logged, blocks nothing and is upgraded when its hook is pending")
async def test_joined_node_takes_part_with_a_pending_hook(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    await stage.cluster.nodes("n3")
    await stage.machine("n3")
    await stage.run()
    assert "n3" not in await stage.states()
    await stage.rancher("n3", pre=OPTIONS)
    await stage.run()
    assert (await stage.states())["n3"] == "PreDraining"


@pytest.mark.rule("nodes: a Secret without Machine is logged and not fatal")
async def test_secret_without_machine_does_not_block_the_end(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    await stage.rancher("n2", post=OPTIONS)
    await stage.cluster.client.delete(MACHINES, "m-n2", namespace="fleet-local")
    ctx = await stage.context()
    for node in ("n1", "n2"):
        ctx.status.move_node(node, NodeState.POST_DRAINED)
    await ctx.persist()
    assert await stage.run() == Completed()


async def test_nodes_without_the_managed_label_are_an_error(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    await stage.run()
    patch = MergePatch({"metadata": {"labels": {"harvesterhci.io/managed": None}}})
    for node in ("n1", "n2"):
        await stage.cluster.client.patch(NODES, node, patch)
    with pytest.raises(BadCluster, match="no Node carries"):
        await stage.run()


async def test_foreign_job_is_an_error(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    await stage.enter()
    settings = JobSettings(image=ToolkitImage(repository="r", tag="t"), service_account="a")
    old = node_job(Owner(name="up", uid="old"), settings, node="n1", job_type=JobType.PRE_DRAIN)
    await stage.cluster.put(JOBS, old, status=COMPLETE)
    await stage.run()
    await stage.rancher("n1", pre=OPTIONS)
    with pytest.raises(ForeignObject):
        await stage.run()
    assert await stage.acknowledgements("n1") == {}
