"""A done node that Rancher drains again, beside a node that is prepared or drained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipeline.node_upgrade.test_gate import RELEASE_KUBERNETES
from tests.pipeline.node_upgrade.test_gate_rows import (
    OLD_KUBERNETES,
    OLD_OS,
    TARGETS,
    in_two_tiers,
    set_up,
    target_waits,
)
from tests.support.cluster.nodes import OPTIONS, PRE
from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.blockers.known_wait import RefusedCordonWait, UncordonedNodeWait
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from upgrade_manager.pipeline.outcome import Waiting

if TYPE_CHECKING:
    from tests.support.managers.node_upgrade import NodeUpgradeRun


async def prepare_after_done(stage: NodeUpgradeRun) -> None:
    """Let n1 be done, and n2, of a later tier, be prepared; n3 is a witness."""
    await in_two_tiers(stage)
    await stage.client.patch(NODES, "n3", MergePatch({"metadata": {"labels": {WITNESS_LABEL: "true"}}}))
    await stage.enter()
    await stage.run()
    await stage.move(n1="PostDrained")
    await stage.report("n1", kubelet=RELEASE_KUBERNETES)
    await stage.request("n2", "pre")


@pytest.mark.rule("nodes: a node is not drained before a node of an earlier tier that Rancher drains again")
async def test_done_node_is_drained_again_before_a_prepared_one(stage: NodeUpgradeRun) -> None:
    """A user raises the generation while the other of two nodes for VMs waits to be drained."""
    await prepare_after_done(stage)
    refused = {"rke.cattle.io/drain-options": OPTIONS, "rke.cattle.io/drain-error": "cordon error"}
    await stage.patch_secret("n1", {"metadata": {"annotations": refused}})
    result = await stage.complete("n2", "pre-drain")
    assert isinstance(result, Waiting)
    (wait,) = [wait for wait in result.waits if isinstance(wait, RefusedCordonWait)]
    assert (wait.name, str(wait.remedies[0])) == ("n1", "Uncordon another node: kubectl uncordon n2")
    assert await stage.acknowledgements("n2") == {}
    await stage.cordon("n2", cordoned=False)
    await stage.patch_secret("n1", {"metadata": {"annotations": {"rke.cattle.io/drain-error": None}}})
    result = await stage.request("n1", "pre")
    # Its first Job has not seen the VMs that come now.
    assert await stage.jobs() == ["pre-drain-n1"]
    assert isinstance(result, Waiting)
    assert WaitKind.UNCORDONED_NODE not in {wait.kind for wait in result.waits}
    await stage.complete("n1", "pre-drain")
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS}


@TARGETS
async def test_prepared_node_is_not_a_target_of_a_node_drained_again(stage: NodeUpgradeRun) -> None:
    """Harvester counts a schedulable witness node, which takes no VMs, so that it permits the cordon."""
    await prepare_after_done(stage)
    await stage.rancher("n1", pre=OPTIONS)
    await stage.complete("n2", "pre-drain")
    assert (await target_waits(stage), await stage.acknowledgements("n2")) == (["n2"], {})
    assert await stage.jobs() == ["pre-drain-n2"]
    await stage.cordon("n2", cordoned=False)
    for _ in range(2):
        assert await target_waits(stage) == []
    assert await stage.jobs() == ["pre-drain-n1"]


@pytest.mark.rule("nodes: a pre-drain Job runs again if its node was uncordoned after it")
async def test_drained_node_that_was_uncordoned_is_prepared_again(stage: NodeUpgradeRun) -> None:
    """Rancher does not drain it again, and upgrades its Kubernetes with the VMs that have come."""
    await set_up(stage, "n1", "n2", "n3", kubelet=OLD_KUBERNETES)
    await stage.enter()
    await stage.run()
    await stage.request("n1", "pre")
    await stage.complete("n1", "pre-drain")
    await stage.cordon("n1", cordoned=False)
    await stage.run()
    await stage.report("n1", os=OLD_OS, kubelet=RELEASE_KUBERNETES)
    await stage.patch_secret("n1", {"metadata": {"annotations": {"rke.cattle.io/post-drain": OPTIONS}}})
    for _ in range(3):
        result = await stage.run()
    assert isinstance(result, Waiting)
    (wait,) = [wait for wait in result.waits if isinstance(wait, UncordonedNodeWait)]
    detail, remedy = "it was uncordoned after its drain, so that VMs may be back", "Cordon it: kubectl cordon n1"
    assert (wait.name, wait.detail, remedy_text(wait.remedies)) == ("n1", detail, remedy)
    assert await stage.jobs() == []
    await stage.cordon("n1", cordoned=True)
    await stage.run()
    assert await stage.jobs() == ["pre-drain-n1"]
    await stage.complete("n1", "pre-drain")
    assert "post-drain-n1" in await stage.jobs()
    assert (await stage.states())["n1"] == "PostDraining"
