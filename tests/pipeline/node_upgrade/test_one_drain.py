"""One drain at a time: a drain is not acknowledged, and no node starts, while another node is away."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, PRE
from tests.support.managers.node_upgrade import PLACE
from upgrade_manager.api.keys import RKE_ETCD_ROLE, RKE_INIT_NODE, RKE_WORKER_ROLE
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.kube.errors import Conflict, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, UPGRADE_PLANS
from upgrade_manager.pipeline.outcome import Failed, Waiting
from upgrade_manager.pipeline.selections import MACHINE_PLANS

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun

OLD_OS, DRAIN_OPTIONS = "Harvester v1.6.1", "rke.cattle.io/drain-options"


async def begin(stage: NodeUpgradeRun, *nodes: str) -> None:
    await stage.begin(*nodes)
    for node in nodes:
        await stage.report(node, os=OLD_OS)


async def annotate(stage: NodeUpgradeRun, node: str, **values: str | None) -> None:
    await stage.patch_secret(node, {"metadata": {"annotations": values}})


async def roles(stage: NodeUpgradeRun, node: str, *names: str) -> None:
    await stage.patch_secret(node, {"metadata": {"labels": dict.fromkeys(names, "true")}})


async def forget(stage: NodeUpgradeRun, node: str) -> None:
    """Let Rancher withdraw the drain, as after a restore of Rancher."""
    await annotate(stage, node, **{PRE: None, POST: None, "rke.cattle.io/pre-drain": None})
    await stage.cordon(node, cordoned=False)


async def pause(stage: NodeUpgradeRun, *nodes: str) -> None:
    spec = {"nodeUpgradeOption": {"pauseNodes": list(nodes)}}
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch({"spec": spec}))


async def resume_by_hand(stage: NodeUpgradeRun, node: str) -> None:
    resumed = MergePatch({"spec": {"suspend": False}})
    await stage.client.patch(JOBS, f"up-node-upgrade-pre-drain-{node}", resumed, namespace=PLACE)


async def begin_two_drains(stage: NodeUpgradeRun) -> None:
    """Let the pre-drain Jobs of n1 and n2 run, of three nodes: n1 was paused, and a user has resumed its Job."""
    await begin(stage, "n1", "n2", "n3")
    await pause(stage, "n1")
    await stage.request("n1", "pre")
    await stage.request("n2", "pre")
    await resume_by_hand(stage, "n1")
    await stage.run()


@pytest.mark.rule("nodes: a drain is not acknowledged while another node is drained, reboots or is NotReady")
async def test_withdrawn_hook_that_returns_waits_for_a_reboot(stage: NodeUpgradeRun) -> None:
    await begin(stage, "n1", "n2", "n3")
    await stage.request("n1", "pre")
    await forget(stage, "n1")
    await stage.run()
    await stage.request("n2", "pre")
    await stage.complete("n2", "pre-drain")
    await stage.request("n2", "post")
    await stage.complete("n2", "post-drain")
    await stage.report("n2", os=OLD_OS, ready="False")
    await stage.run()
    assert (await stage.states())["n2"] == "WaitingReboot"
    await stage.request("n1", "pre")
    await stage.run()
    if "pre-drain-n1" in await stage.jobs():
        await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {}


@pytest.mark.rule("nodes: a drain is not acknowledged while another node is drained, reboots or is NotReady")
async def test_job_that_a_user_resumes_waits_for_a_node_that_is_down(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2", "n3")
    await pause(stage, "n1")
    await stage.enter()
    await stage.run()
    await stage.request("n1", "pre")
    assert (await stage.states())["n1"] == "UpgradePaused"
    await stage.request("n2", "pre")
    await stage.complete("n2", "pre-drain")
    await stage.report("n2", os=OLD_OS, ready="False")
    await resume_by_hand(stage, "n1")
    await stage.run()
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {}
    assert "n1: waiting until node n2 is upgraded and Ready" in await stage.waiting()


@pytest.mark.rule("nodes: a drain is not acknowledged while another node is drained, reboots or is NotReady")
@pytest.mark.parametrize("first", ["n1", "n2"])
async def test_one_of_two_complete_jobs_is_acknowledged_by_tier(stage: NodeUpgradeRun, first: str) -> None:
    await begin(stage, "n1", "n2", "n3")
    second = {"n1": "n2", "n2": "n1"}[first]
    await roles(stage, first, RKE_ETCD_ROLE)
    await roles(stage, second, RKE_WORKER_ROLE)
    await pause(stage, "n1")
    await stage.request("n1", "pre")
    await stage.request("n2", "pre")
    await resume_by_hand(stage, "n1")
    await stage.run()
    for node in ("n1", "n2"):
        await stage.finish(node, "pre-drain")
    await stage.run()
    assert (await stage.acknowledgements(first), await stage.acknowledgements(second)) == ({PRE: OPTIONS}, {})


@pytest.mark.rule("nodes: a drained node of a later tier holds an earlier one back only while it is not Ready")
@pytest.mark.parametrize(("ready", "is_held"), [("True", False), ("False", True)])
async def test_earlier_tier_waits_for_a_drained_node_that_is_down(
    stage: NodeUpgradeRun, ready: str, *, is_held: bool
) -> None:
    await begin(stage, "n1", "n2")
    await roles(stage, "n1", RKE_ETCD_ROLE, RKE_INIT_NODE)
    await roles(stage, "n2", RKE_WORKER_ROLE)
    await stage.move(n1="PostDrained")
    await stage.request("n2", "pre")
    await stage.complete("n2", "pre-drain")
    assert (await stage.states())["n2"] == "PreDrained"
    await stage.report("n2", os=OLD_OS, ready=ready)
    await stage.request("n1", "pre")
    await stage.run()
    assert ("pre-drain-n1" not in await stage.jobs()) is is_held


@pytest.mark.rule("nodes: no node starts while Rancher drains another one, also if others acknowledged its hook")
@pytest.mark.parametrize("hooks", [OPTIONS, "{}"], ids=["acknowledged by a user", "without our hooks"])
async def test_node_waits_for_a_drain_acknowledged_by_others(stage: NodeUpgradeRun, hooks: str) -> None:
    await begin(stage, "n1", "n2")
    await annotate(stage, "n1", **{DRAIN_OPTIONS: hooks, "rke.cattle.io/pre-drain": hooks, PRE: hooks})
    await stage.cordon("n1", cordoned=True)
    await stage.request("n2", "pre")
    assert await stage.jobs() == []
    await annotate(stage, "n1", **{DRAIN_OPTIONS: None, "rke.cattle.io/pre-drain": None, PRE: None})
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n2"]


@pytest.mark.rule("nodes: no node starts while Rancher drains another one, also if others acknowledged its hook")
async def test_drain_that_waits_for_its_cordon_holds_no_node_back(stage: NodeUpgradeRun) -> None:
    """Rancher waits until the node can be cordoned, which may take the other node's drain."""
    await begin(stage, "n1", "n2")
    await annotate(stage, "n1", **{DRAIN_OPTIONS: OPTIONS})
    await stage.request("n2", "pre")
    assert await stage.jobs() == ["pre-drain-n2"]


@pytest.mark.rule("nodes: the reboot of a node that an earlier upgrade has drained passes the gate")
async def test_node_that_a_user_acknowledged_does_not_reboot(stage: NodeUpgradeRun) -> None:
    """The gate has held the acknowledgement back, so that it has not let the reboot pass."""
    await begin(stage, "n1", "n2", "n3")
    await stage.request("n1", "pre")
    await stage.report("n3", os=OLD_OS, ready="False")
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {}
    await annotate(stage, "n1", **{PRE: OPTIONS})
    await stage.run()
    result = await stage.request("n1", "post")
    assert "post-drain-n1" not in await stage.jobs()
    assert isinstance(result, Waiting)
    assert (WaitKind.UNAVAILABLE_NODE, "n3") in {(wait.kind, wait.name) for wait in result.waits}
    await stage.report("n3", os=OLD_OS)
    await stage.run()
    assert "post-drain-n1" in await stage.jobs()


@pytest.mark.rule("nodes: a plan that fails acknowledges no further drain")
async def test_plan_that_fails_drains_no_further_node(stage: NodeUpgradeRun) -> None:
    await begin_two_drains(stage)
    await stage.finish("n1", "pre-drain")
    await stage.fail("n2", "pre-drain")
    assert isinstance(await stage.run(), Failed)
    assert await stage.acknowledgements("n1") == {}
    assert await stage.states() == {"n1": "PreDraining", "n2": "PreDrainFailed", "n3": "ImagePreloaded"}


@pytest.mark.rule("nodes: a plan that fails acknowledges no further drain")
async def test_plan_that_fails_reboots_no_further_node(stage: NodeUpgradeRun) -> None:
    """Until a plan runs again, no node reboots."""
    await begin(stage, "n1", "n2", "n3")
    await pause(stage, "n1")
    await stage.request("n1", "pre")
    await stage.request("n2", "pre")
    await stage.complete("n2", "pre-drain")
    await resume_by_hand(stage, "n1")
    await stage.run()
    await stage.fail("n1", "pre-drain")
    await stage.rancher("n2", post=OPTIONS)
    assert isinstance(await stage.run(), Failed)
    assert "post-drain-n2" not in await stage.jobs()
    assert await stage.states() == {"n1": "PreDrainFailed", "n2": "PreDrained", "n3": "ImagePreloaded"}


@pytest.mark.rule("nodes: a drain is not acknowledged while another node is drained, reboots or is NotReady")
async def test_recorded_acknowledgement_holds_others_back(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager dies after the record: the acknowledgement may be written, and the cache may not show it yet."""
    await begin_two_drains(stage)
    await stage.finish("n2", "pre-drain")
    with monkeypatch.context() as crashing:
        crashing.setattr(
            "upgrade_manager.pipeline.node_upgrade.effects.apply_effect", AsyncMock(side_effect=Conflict("a crash"))
        )
        with pytest.raises(Conflict):
            await stage.run()
    await stage.complete("n1", "pre-drain")
    assert (await stage.acknowledgements("n1"), await stage.acknowledgements("n2")) == ({}, {PRE: OPTIONS})
    assert "n1: waiting until node n2 is upgraded and Ready" in await stage.waiting()


@pytest.mark.rule("nodes: no node starts while Rancher drains another one, also if others acknowledged its hook")
async def test_secrets_are_compared_while_two_nodes_have_hooks(stage: NodeUpgradeRun) -> None:
    """A user acknowledges the hook of n2 while the watch of the Secrets hangs."""
    await begin_two_drains(stage)
    await stage.cluster.observed.freeze(MACHINE_PLANS)
    await annotate(stage, "n2", **{PRE: OPTIONS})
    await stage.finish("n1", "pre-drain")
    with pytest.raises(Transient, match="the watch of secrets is behind the API server"):
        await stage.run()
    assert await stage.acknowledgements("n1") == {}
