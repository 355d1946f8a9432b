"""Whole upgrades that wait for other controllers: the object is named, and the upgrade goes on once it is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest

from hack.simulation import Simulation
from tests.support.upgrade import started
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    LONGHORN_ENGINES,
    LONGHORN_VOLUMES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.upgrade import UpgradeRun
    from upgrade_manager.kube.objects import Object

    Step: TypeAlias = Callable[[UpgradeRun], Awaitable[None]]

row = pytest.param
LABELS = {"app": "shop"}


def frozen(name: str) -> tuple[Step, Step]:
    """Return the steps that freeze a controller, and let it run again."""

    async def freeze(stage: UpgradeRun) -> None:
        stage.simulation.freezer.freeze(name)

    async def thaw(stage: UpgradeRun) -> None:
        stage.simulation.freezer.thaw(name)

    return freeze, thaw


async def add_budget(stage: UpgradeRun) -> None:
    """Create a Pod on each node, of which none may be evicted."""
    for node in (await stage.client.list(NODES)).items:
        name = f"shop-{objects.name(node)}"
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop", "uid": "u", "controller": True}
        metadata = {"name": name, "namespace": "default", "labels": LABELS, "ownerReferences": [owner]}
        spec = {"nodeName": objects.name(node), "containers": [{"name": "c", "image": "rancher/mirrored-pause:3.6"}]}
        await stage.client.create(PODS, {"metadata": metadata, "spec": spec}, namespace="default")
    budget = {
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": LABELS}},
    }
    await stage.client.create(POD_DISRUPTION_BUDGETS, budget, namespace="default")


async def delete_budget(stage: UpgradeRun) -> None:
    await stage.client.delete(POD_DISRUPTION_BUDGETS, "shop", namespace="default")


async def degrade(stage: UpgradeRun) -> None:
    """Fail a replica of a volume for which no disk has space."""
    volume = min(map(objects.name, (await stage.client.list(LONGHORN_VOLUMES)).items))
    await set_disk(stage, volume, ["nvme"])
    engine = f"{volume}-e-0"
    found = await stage.client.get(LONGHORN_ENGINES, engine, namespace=LONGHORN_SYSTEM)
    failed = {min(objects.status(found)["replicaModeMap"]): "ERR"}
    patch = MergePatch({"status": {"replicaModeMap": failed}})
    await stage.client.patch(LONGHORN_ENGINES, engine, patch, namespace=LONGHORN_SYSTEM, subresource="status")


async def repair(stage: UpgradeRun) -> None:
    await set_disk(stage, min(map(objects.name, (await stage.client.list(LONGHORN_VOLUMES)).items)), None)


async def set_disk(stage: UpgradeRun, volume: str, tags: list[str] | None) -> None:
    patch = MergePatch({"spec": {"diskSelector": tags}})
    await stage.client.patch(LONGHORN_VOLUMES, volume, patch, namespace=LONGHORN_SYSTEM)


def is_stalled(plan: Object) -> bool:
    return objects.is_condition_true(plan, "Stalled")


@pytest.mark.rule(
    "blockers: a drain that does not end is named with Rancher's error, its PodDisruptionBudgets and its Pods",
    "blockers: a VM that does not leave its node is named with its migration and a command",
    "blockers: a volume that lacks replicas is named while the pre-drain Job waits for it",
    "blockers: a Rancher that does nothing is named with its Deployment or its conditions",
    "blockers: an import without progress is named with its importer's message",
)
@pytest.mark.parametrize(
    ("phase", "steps", "reason", "kind", "name", "minutes"),
    [
        row(
            "ISODownloading",
            frozen("ImageController"),
            "ImportStuck",
            "VirtualMachineImage",
            "upgrade-iso",
            10,
            id="import",
        ),
        row("NodeUpgrading", frozen("rancher"), "RancherSilent", "Deployment", "rancher", 10, id="rancher"),
        row("NodeUpgrading", frozen("Planner"), "RancherSilent", "Cluster", "local", 10, id="planner"),
        row(
            "NodeUpgrading", frozen("virt-controller"), "MigrationStuck", "VirtualMachineInstance", "vm-0", 10, id="vms"
        ),
        row("ClusterUpgrading", (degrade, repair), "VolumeDegraded", "Volume", "pvc-", 10, id="volume"),
        row(
            "ClusterUpgrading",
            (add_budget, delete_budget),
            "DrainFailing",
            "PodDisruptionBudget",
            "shop",
            5,
            id="budget",
        ),
    ],
)
async def test_object_that_holds_the_nodes_up_is_named(
    phase: str, steps: tuple[Step, Step], reason: str, kind: str, name: str, minutes: int
) -> None:
    damage, mend = steps
    async with Simulation() as simulation, started(simulation) as stage:
        await stage.until(phase)
        await damage(stage)
        begun = loop_time()
        plan = await stage.until_plan(is_stalled, seconds=1800)
        late = loop_time() - begun - 60 * minutes
        found = objects.status(plan)["blockers"][0]
        assert (found["reason"], found["kind"]) == (reason, kind)
        assert found["name"].startswith(name)
        assert -60 <= late <= 60
        await mend(stage)
        await stage.until_plan(lambda plan: not is_stalled(plan), seconds=60)
        await stage.succeed()
        assert {one for one, _ in await stage.warnings()} == {reason}
