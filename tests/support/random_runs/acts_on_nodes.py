"""Acts of users and other controllers on nodes during a random upgrade."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.support.managers.upgrade import node_states
from tests.support.random_runs.undoing import undone
from upgrade_manager.api.blockers import BlockerReason, read_blockers
from upgrade_manager.api.keys import MANAGED_LABEL, PREFIX, SUC_NODE_LABEL_PREFIX
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, NotFound, Terminal, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.support.managers.upgrade import UpgradeRun
    from tests.support.random_runs.interference import Interference
    from upgrade_manager.kube.objects import Object

_BEFORE_ITS_TURN = {None, "ImagePreloaded"}
#: Number of removals of a label that flaps.
_FLAPS = 4


async def label_missing(stage: UpgradeRun, act: Interference) -> None:
    """Remove the managed label of one node for a while."""
    await _unlabelled(stage, [act.node], act.lasts)


async def labels_missing(stage: UpgradeRun, act: Interference) -> None:
    """Remove the managed labels of all nodes for a while."""
    await _unlabelled(stage, stage.simulation.scenario.nodes.names, act.lasts)


async def label_flapping(stage: UpgradeRun, act: Interference) -> None:
    """Remove and add the managed label of a node repeatedly."""
    for _ in range(_FLAPS):
        await _unlabelled(stage, [act.node], act.lasts / _FLAPS)
        await asyncio.sleep(act.lasts / _FLAPS)


async def node_deleted(stage: UpgradeRun, act: Interference) -> None:
    """Delete a Node; its kubelet registers it again, without a cordon, which an operator sets as the blocker says."""
    node = await stage.client.get(NODES, act.node)
    async with undone(lambda: _register(stage, node)):
        await stage.client.delete(NODES, act.node)
        await asyncio.sleep(act.lasts)
    while not await _is_named(stage, act.node):  # noqa: ASYNC110  # the plan belongs to another task
        await asyncio.sleep(0.5)
    async with undone(lambda: _cordon(stage, act.node, cordoned=True)):
        pass


async def node_restarted(stage: UpgradeRun, act: Interference) -> None:
    """Restart a node that is done."""
    await _until_done(stage, act.node)
    stage.simulation.hosts.power_off(act.node)


async def node_cordoned(stage: UpgradeRun, act: Interference) -> None:
    """Cordon a node that is done, and uncordon it later; Harvester refuses to cordon the last schedulable node."""
    await _until_done(stage, act.node)
    with suppress(Terminal):
        async with undone(lambda: _cordon(stage, act.node, cordoned=False)):
            await _cordon(stage, act.node, cordoned=True)
            await asyncio.sleep(act.lasts)


async def node_off_early(stage: UpgradeRun, act: Interference) -> None:
    """Power a node off before its turn, for as long as it takes to boot."""
    if node_states(await stage.plan()).get(act.node) in _BEFORE_ITS_TURN:
        stage.simulation.hosts.power_off(act.node)


async def _unlabelled(stage: UpgradeRun, nodes: Collection[str], seconds: float) -> None:
    async with undone(lambda: _label(stage, nodes, "true")):
        await _label(stage, nodes, None)
        await asyncio.sleep(seconds)


async def _label(stage: UpgradeRun, nodes: Collection[str], value: str | None) -> None:
    for node in nodes:
        await stage.client.patch(NODES, node, MergePatch({"metadata": {"labels": {MANAGED_LABEL: value}}}))


async def _register(stage: UpgradeRun, node: Object) -> None:
    """Create the Node without the labels and annotations that an upgrade has set.

    A kubelet sets only configured labels (Kubernetes, initialNode in pkg/kubelet/kubelet_node_status.go).
    That Harvester sets the others again at once is a guess.
    """
    kept = {key: value for key, value in objects.annotations_of(node).items() if not key.startswith(PREFIX)}
    labels = {key: value for key, value in objects.labels(node).items() if not key.startswith(SUC_NODE_LABEL_PREFIX)}
    metadata = {"name": objects.name(node), "labels": labels, "annotations": kept}
    spec = {key: value for key, value in objects.spec(node).items() if key != "unschedulable"}
    with suppress(AlreadyExists):
        await stage.client.create(NODES, {**node, "metadata": metadata, "spec": spec})


async def _is_named(stage: UpgradeRun, node: str) -> bool:
    """Return True while a blocker says that the node was uncordoned before its drain."""
    with suppress(Transient, NotFound):
        blockers = read_blockers(objects.status(await stage.plan()).get("blockers"))
        return any(one.reason is BlockerReason.NODE_UNCORDONED and one.name == node for one in blockers)
    return False


async def _until_done(stage: UpgradeRun, node: str) -> None:
    """Wait until the node is done, for ever if that never happens during the node upgrade."""
    while True:
        plan = await stage.plan()
        if node_states(plan).get(node) == "PostDrained" and objects.status(plan)["currentPhase"] == "NodeUpgrading":
            return
        await asyncio.sleep(0.5)


async def _cordon(stage: UpgradeRun, node: str, *, cordoned: bool) -> None:
    await stage.client.patch(NODES, node, MergePatch({"spec": {"unschedulable": cordoned or None}}))
