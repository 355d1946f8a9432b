"""Acts of users on the settings that an upgrade overrides, and on the plan, during a random upgrade."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ADDON_DESCHEDULER, KUBE_SYSTEM, LONGHORN_REPLENISHMENT_SETTING, LONGHORN_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, LONGHORN_SETTINGS, UPGRADE_PLANS

if TYPE_CHECKING:
    from tests.support.managers.upgrade import UpgradeRun
    from tests.support.random_runs.interference import Interference

#: The values that users set, which must stay.
USERS_INTERVAL, USERS_DESCHEDULER = "777", True


async def interval_set(stage: UpgradeRun, _: Interference | None = None) -> None:
    patch = MergePatch({"value": USERS_INTERVAL})
    await stage.client.patch(LONGHORN_SETTINGS, LONGHORN_REPLENISHMENT_SETTING, patch, namespace=LONGHORN_SYSTEM)


async def descheduler_enabled(stage: UpgradeRun, _: Interference | None = None) -> None:
    patch = MergePatch({"spec": {"enabled": USERS_DESCHEDULER}})
    await stage.client.patch(ADDONS, ADDON_DESCHEDULER, patch, namespace=KUBE_SYSTEM)


async def plan_replaced(stage: UpgradeRun, _: Interference) -> None:
    """Drop what `kubectl replace` drops."""
    plan = await stage.plan()
    if not objects.is_deleting(plan) and objects.status(plan).get("currentPhase"):
        metadata = {"finalizers": None, "annotations": None}
        await stage.client.patch(UPGRADE_PLANS, stage.name, MergePatch({"metadata": metadata}))


async def preload_disabled(stage: UpgradeRun, _: Interference) -> None:
    """Set the concurrency of the image preload below 0."""
    await stage.patch(spec={"imagePreloadOption": {"concurrency": -1}})


async def strategy_removed(stage: UpgradeRun, _: Interference) -> None:
    """Remove Rancher's strategy with the drain hooks."""
    await stage.patch_cluster(upgradeStrategy=None)


async def strategy_edited(stage: UpgradeRun, _: Interference) -> None:
    """Change a field of Rancher's strategy beside the drain hooks."""
    await stage.patch_cluster(upgradeStrategy={"controlPlaneConcurrency": "2"})


async def planned_again(stage: UpgradeRun, _: Interference) -> None:
    """Let Rancher drain all nodes."""
    await stage.plan_again()


async def planned_twice(stage: UpgradeRun, act: Interference) -> None:
    """Let Rancher drain all nodes, and again before or after it has done so."""
    await stage.plan_again()
    await asyncio.sleep(act.lasts)
    await stage.plan_again()
