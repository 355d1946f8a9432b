"""What users, webhooks and other controllers do to a cluster during a random upgrade."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.faults.rules import Match, Refuse, Rule
from tests.support.upgrade import node_states
from upgrade_manager.api.keys import FLEET_LOCAL, HARVESTER_SYSTEM, MANAGED_LABEL, PROVISIONING_CLUSTER, Component
from upgrade_manager.api.names import component_name
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, NODES, PROVISIONING_CLUSTERS, UPGRADE_PLANS, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.upgrade import UpgradeRun

#: Interference after which the strategy or the generation is another one than before the upgrade.
CHANGES_STRATEGY = frozenset({"strategy removed", "strategy edited"})
CHANGES_GENERATION = "all nodes planned again"
#: Interference after which a node boots once more.
RESTARTS = "a done node restarted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """One act, some virtual seconds after the plan has recorded so many phase values."""

    what: str
    phases: int
    seconds: float
    #: Virtual seconds until it is undone, where it is.
    lasts: float
    node: str

    async def act(self, stage: UpgradeRun) -> None:
        """Do it, unless the object does not exist."""
        with suppress(NotFound):
            await ACTS[self.what](stage, self)


async def _label_missing(stage: UpgradeRun, act: Interference) -> None:
    await _label(stage, [act.node], None)
    await asyncio.sleep(act.lasts)
    await _label(stage, [act.node], "true")


async def _labels_missing(stage: UpgradeRun, act: Interference) -> None:
    nodes = stage.simulation.scenario.nodes.names
    await _label(stage, nodes, None)
    await asyncio.sleep(act.lasts)
    await _label(stage, nodes, "true")


async def _label(stage: UpgradeRun, nodes: list[str] | tuple[str, ...], value: str | None) -> None:
    for node in nodes:
        await stage.client.patch(NODES, node, MergePatch({"metadata": {"labels": {MANAGED_LABEL: value}}}))


async def _node_restarted(stage: UpgradeRun, act: Interference) -> None:
    """Restart a node that is done."""
    await _until_done(stage, act.node)
    stage.simulation.hosts.power_off(act.node)


async def _node_cordoned(stage: UpgradeRun, act: Interference) -> None:
    """Cordon a node that is done, and uncordon it later, in any case."""
    await _until_done(stage, act.node)
    await _cordon(stage, act.node, cordoned=True)
    try:
        await asyncio.sleep(act.lasts)
    finally:
        while True:
            with suppress(Transient):
                await _cordon(stage, act.node, cordoned=False)
                break
            await asyncio.sleep(1)


async def _until_done(stage: UpgradeRun, node: str) -> None:
    """Wait until the node is done, for ever if that never happens during the node upgrade."""
    while True:
        plan = await stage.plan()
        if node_states(plan).get(node) == "PostDrained" and objects.status(plan)["currentPhase"] == "NodeUpgrading":
            return
        await asyncio.sleep(0.5)


async def _cordon(stage: UpgradeRun, node: str, *, cordoned: bool) -> None:
    await stage.client.patch(NODES, node, MergePatch({"spec": {"unschedulable": cordoned or None}}))


async def _plan_replaced(stage: UpgradeRun, _: Interference) -> None:
    """Drop what `kubectl replace` drops."""
    plan = await stage.plan()
    if not objects.is_deleting(plan) and objects.status(plan).get("currentPhase"):
        metadata = {"finalizers": None, "annotations": None}
        await stage.client.patch(UPGRADE_PLANS, stage.name, MergePatch({"metadata": metadata}))


async def _strategy_removed(stage: UpgradeRun, _: Interference) -> None:
    await _patch_cluster(stage, {"upgradeStrategy": None})


async def _strategy_edited(stage: UpgradeRun, _: Interference) -> None:
    await _patch_cluster(stage, {"upgradeStrategy": {"controlPlaneConcurrency": "2"}})


async def _planned_again(stage: UpgradeRun, _: Interference) -> None:
    local = await stage.client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    generation = objects.spec(local)["rkeConfig"].get("provisionGeneration") or 0
    await _patch_cluster(stage, {"provisionGeneration": generation + 1})


async def _patch_cluster(stage: UpgradeRun, members: dict[str, Any]) -> None:
    patch = MergePatch({"spec": {"rkeConfig": members}})
    await stage.client.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL)


async def _settings_refused(stage: UpgradeRun, act: Interference) -> None:
    refusal = Refuse(status=403, reason="Forbidden", message="a webhook refuses it")
    rules = [
        Rule(match=Match(verbs=("patch",), resource=kind), action=refusal)
        for kind in ("addons.*", "settings.longhorn.io")
    ]
    for rule in rules:
        stage.simulation.middleware.add(rule)
    await asyncio.sleep(act.lasts)
    for rule in rules:
        stage.simulation.middleware.remove(rule)


async def _version_deleted(stage: UpgradeRun, act: Interference) -> None:
    """Delete the Version; Harvester's sync creates it again."""
    version = objects.spec(await stage.plan()).get("version")
    if version:
        found = await stage.client.get(VERSIONS, version, namespace=HARVESTER_SYSTEM)
        await stage.client.delete(VERSIONS, version, namespace=HARVESTER_SYSTEM)
        await asyncio.sleep(act.lasts)
        metadata = {"name": version, "namespace": HARVESTER_SYSTEM}
        await stage.client.create(VERSIONS, {**found, "metadata": metadata}, namespace=HARVESTER_SYSTEM)


async def _repository_scaled_down(stage: UpgradeRun, _: Interference) -> None:
    name = component_name(stage.name, Component.REPO)
    await stage.client.patch(DEPLOYMENTS, name, MergePatch({"spec": {"replicas": 0}}), namespace=HARVESTER_SYSTEM)


async def _preload_disabled(stage: UpgradeRun, _: Interference) -> None:
    await stage.patch(spec={"imagePreloadOption": {"concurrency": -1}})


ACTS: dict[str, Callable[[UpgradeRun, Interference], Awaitable[None]]] = {
    "a done node cordoned": _node_cordoned,
    RESTARTS: _node_restarted,
    "a label missing": _label_missing,
    "all labels missing": _labels_missing,
    "plan replaced": _plan_replaced,
    "preload disabled": _preload_disabled,
    "repository scaled down": _repository_scaled_down,
    "settings refused": _settings_refused,
    "strategy edited": _strategy_edited,
    "strategy removed": _strategy_removed,
    "version deleted": _version_deleted,
    CHANGES_GENERATION: _planned_again,
}
