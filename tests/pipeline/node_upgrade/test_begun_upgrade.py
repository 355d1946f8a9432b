"""An upgrade that has begun: it is not begun again, and a running OS upgrade is left alone, whatever others write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, PRE
from tests.support.managers.node_upgrade import PLACE
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, PreconditionFailed
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, PROVISIONING_CLUSTERS, SECRETS, UPGRADE_PLANS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.selections import MACHINE_PLANS

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun

OLD_OS, JOB = "Harvester v1.6.1", "up-node-upgrade-post-drain-n1"


async def post_draining(stage: NodeUpgradeRun) -> str:
    """Upgrade n1 until its post-drain Job runs, and return the Job's uid."""
    await stage.begin("n1", "n2")
    for node in ("n1", "n2"):
        await stage.report(node, os=OLD_OS)
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    await stage.request("n1", "post")
    return await job_uid(stage)


async def job_uid(stage: NodeUpgradeRun) -> str:
    found = await stage.client.find(JOBS, JOB, namespace=PLACE)
    return objects.uid(found) if found else ""


async def patch_cluster(stage: NodeUpgradeRun, **spec: Any) -> None:
    """Change the Cluster, and remove its annotations."""
    cluster = await stage.client.get(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    annotations: dict[str, Any] = dict.fromkeys(objects.annotations_of(cluster))
    patch = MergePatch({"metadata": {"annotations": annotations}, "spec": spec})
    await stage.client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")


@pytest.mark.rule("nodes: a post-drain Job that may be writing the OS is never removed")
async def test_post_drain_job_survives_a_removed_acknowledgement(stage: NodeUpgradeRun) -> None:
    first = await post_draining(stage)
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: None}}})
    await stage.run()
    assert await job_uid(stage) == first != ""
    await stage.complete("n1", "post-drain")
    await stage.run()
    assert (await job_uid(stage), (await stage.states())["n1"]) == (first, "WaitingReboot")
    await stage.reboot("n1")
    await stage.run()
    assert (await stage.acknowledgements("n1")).get(POST) == OPTIONS


@pytest.mark.rule("nodes: a post-drain Job that may be writing the OS is never removed")
@pytest.mark.rule("nodes: an upgrade that has started a node is not started again, whatever the Cluster shows")
async def test_restored_cluster_is_a_blocker(stage: NodeUpgradeRun) -> None:
    first = await post_draining(stage)
    old = {"provisionGeneration": 4, "upgradeStrategy": None}
    await patch_cluster(stage, kubernetesVersion="v1.32.4+rke2r1", rkeConfig=old)
    for _ in range(2):
        result = await stage.run()
        assert isinstance(result, Waiting)
        assert WaitKind.CHANGED_CLUSTER in {wait.kind for wait in result.waits}
    assert (await job_uid(stage), await stage.generation()) == (first, 4)
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


@pytest.mark.rule("nodes: a post-drain Job that may be writing the OS is never removed")
async def test_post_drain_job_counts_for_a_secret_created_again(stage: NodeUpgradeRun) -> None:
    """Rancher creates the Secret without the drain, so that no hook follows."""
    first = await post_draining(stage)
    await stage.client.delete(SECRETS, "s-n1", namespace="fleet-local")
    labels = {"rke.cattle.io/machine-name": "m-n1"}
    metadata = {"name": "s-n1", "namespace": "fleet-local", "labels": labels}
    await stage.cluster.put(SECRETS, {"metadata": metadata, "type": "rke.cattle.io/machine-plan", "data": {}})
    await stage.cordon("n1", cordoned=False)
    await stage.run()
    await stage.complete("n1", "post-drain")
    assert (await job_uid(stage), (await stage.states())["n1"]) == (first, "WaitingReboot")
    await stage.request("n2", "pre")
    assert "pre-drain-n2" not in await stage.jobs()
    await stage.reboot("n1")
    await stage.run()
    assert ((await stage.states())["n1"], "pre-drain-n2" in await stage.jobs()) == ("PostDrained", True)


@pytest.mark.rule("nodes: an upgrade that has started a node is not started again, whatever the Cluster shows")
async def test_begun_upgrade_without_a_recorded_generation_goes_on(stage: NodeUpgradeRun) -> None:
    await post_draining(stage)
    patch = MergePatch({"status": {"provisionGeneration": None}})
    await stage.client.patch(UPGRADE_PLANS, "up", patch, subresource="status")
    await patch_cluster(stage)
    await stage.run()
    assert (await stage.generation(), await stage.acknowledgements("n1")) == (5, {PRE: OPTIONS})


@pytest.mark.rule("nodes: while the Cluster requests an older Kubernetes, no hook is acknowledged")
async def test_older_kubernetes_without_a_generation_is_a_blocker(stage: NodeUpgradeRun) -> None:
    await post_draining(stage)
    patch = MergePatch({"status": {"provisionGeneration": None}})
    await stage.client.patch(UPGRADE_PLANS, "up", patch, subresource="status")
    await patch_cluster(stage, kubernetesVersion="v1.32.4+rke2r1")
    result = await stage.run()
    assert isinstance(result, Waiting)
    assert WaitKind.CHANGED_CLUSTER in {wait.kind for wait in result.waits}


@pytest.mark.rule("nodes: the reconcile that begins the upgrade decides about no node")
async def test_first_reconcile_decides_nothing(stage: NodeUpgradeRun) -> None:
    """The caches still show answers that the manager itself has removed."""
    await stage.set_up("n1", "n2")
    await stage.rancher("n1", pre=OPTIONS, post=OPTIONS)
    await stage.patch_secret("n1", {"metadata": {"annotations": {PRE: OPTIONS}}})
    await stage.enter()
    await stage.cluster.observed.freeze(MACHINE_PLANS)
    result = await stage.run()
    assert isinstance(result, Waiting)
    assert (await stage.acknowledgements("n1"), await stage.jobs()) == ({}, [])


@pytest.mark.rule("nodes: the gate is passed again immediately before the step is written")
async def test_node_that_goes_down_meanwhile_holds_the_start(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.begin("n1", "n2", "n3")
    persist = ReconcileContext.persist

    async def slow(ctx: ReconcileContext) -> bool:
        await stage.report("n2", os=OLD_OS, ready="False")
        return await persist(ctx)

    monkeypatch.setattr(ReconcileContext, "persist", slow)
    await stage.request("n1", "pre")
    assert await stage.jobs() == []


async def deleted_plan(stage: NodeUpgradeRun) -> ReconcileContext:
    """Let a user delete the plan, and return the context of a manager whose cache does not show that."""
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch({"metadata": {"finalizers": ["example.com/held"]}}))
    ctx = await stage.context()
    await stage.client.delete(UPGRADE_PLANS, "up")
    return ctx


@pytest.mark.rule("nodes: a plan that is being deleted acknowledges nothing")
async def test_plan_that_is_being_deleted_acknowledges_nothing(stage: NodeUpgradeRun) -> None:
    await stage.begin("n1", "n2")
    await stage.request("n1", "pre")
    await stage.finish("n1", "pre-drain")
    ctx = await deleted_plan(stage)
    with pytest.raises(PreconditionFailed):
        await stage.phase.run(ctx)
    assert await stage.acknowledgements("n1") == {}


async def crash_before(stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the manager record a step and die before it writes the step."""
    with monkeypatch.context() as crashing:
        crashing.setattr(
            "upgrade_manager.pipeline.node_upgrade.effects.apply_effect", AsyncMock(side_effect=Conflict("a crash"))
        )
        with pytest.raises(Conflict):
            await stage.run()


@pytest.mark.rule("nodes: a plan that is being deleted acknowledges nothing")
@pytest.mark.parametrize("job", ["absent", "complete"])
async def test_recorded_step_of_a_plan_that_is_being_deleted(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    """The step is recorded, so that there is no status to write, which would conflict."""
    await stage.begin("n1", "n2")
    await stage.rancher("n1", pre=OPTIONS)
    if job == "complete":
        await stage.run()
        await stage.finish("n1", "pre-drain")
    await crash_before(stage, monkeypatch)
    ctx, before = await deleted_plan(stage), await stage.jobs()
    with pytest.raises(PreconditionFailed, match="UpgradePlan up has changed"):
        await stage.phase.run(ctx)
    assert (await stage.jobs(), await stage.acknowledgements("n1")) == (before, {})
