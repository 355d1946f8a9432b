"""How the node upgrade begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.harvester import RELEASE
from upgrade_manager.api.keys import MANAGED_LABEL
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, LONGHORN_SETTINGS, UPGRADE_PLANS
from upgrade_manager.pipeline.errors import MissingObject
from upgrade_manager.pipeline.phases.node_upgrade import NodeUpgrade

if TYPE_CHECKING:
    from tests.support.node_upgrade import NodeUpgradeRun

    pass


@pytest.mark.rule("nodes: managed nodes without a state become ImagePreloaded; others are unchanged")
async def test_nodes_begin_as_preloaded_and_none_moves_back(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    ctx = await stage.context()
    ctx.status.move_node("n1", NodeState.PRE_DRAINED)
    await ctx.persist()
    await stage.cluster.nodes("unmanaged", **{MANAGED_LABEL: "false"})
    await stage.enter()
    assert await stage.states() == {"n1": "PreDrained", "n2": "ImagePreloaded"}


@pytest.mark.rule("nodes: an original value is recorded before it is changed")
async def test_nothing_changes_before_originals_are_recorded(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1", "n2")
    name = {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"}
    await stage.cluster.put(LONGHORN_SETTINGS, {"metadata": name, "value": "600"})
    spec = {"enabled": True, "repo": "r", "chart": "c", "version": "1", "valuesContent": ""}
    await stage.cluster.put(ADDONS, {"metadata": {"name": "descheduler", "namespace": "kube-system"}, "spec": spec})
    before = await stage.of_others()
    ctx = await stage.context()
    # The plan changes meanwhile, so that the record conflicts.
    touched = MergePatch({"metadata": {"labels": {"touched": "yes"}}})
    await stage.cluster.client.patch(UPGRADE_PLANS, "up", touched)
    with pytest.raises(Conflict):
        await stage.phase.enter(ctx)
    assert await stage.of_others() == before


@pytest.mark.rule(
    "api: replica-replenishment-wait-interval on the plan is Longhorn's original value",
    "nodes: Longhorn's replica-replenishment-wait-interval is raised to 1800",
    "nodes: the interval's original value is recorded on the plan",
    "nodes: a crash neither loses an original value nor records the override as one",
)
async def test_original_is_recorded_once_before_the_change(stage: NodeUpgradeRun) -> None:
    await stage.set_up("n1")
    name = {"name": "replica-replenishment-wait-interval", "namespace": "longhorn-system"}
    await stage.cluster.put(LONGHORN_SETTINGS, {"metadata": name, "value": "600"})
    for _ in range(3):
        await NodeUpgrade().enter(await stage.context())
    notes = objects.annotations_of(await stage.cluster.client.get(UPGRADE_PLANS, "up"))
    assert notes["management.harvesterhci.io/replica-replenishment-wait-interval"] == "600"
    setting = await stage.cluster.find(LONGHORN_SETTINGS, "replica-replenishment-wait-interval", "longhorn-system")
    assert setting["value"] == "1800"


async def test_missing_rancher_cluster_blocks_the_phase(stage: NodeUpgradeRun) -> None:
    await stage.cluster.nodes("n1", "n2")
    await stage.cluster.plan(status={"releaseMetadata": RELEASE})
    with pytest.raises(MissingObject):
        await NodeUpgrade().enter(await stage.context())
