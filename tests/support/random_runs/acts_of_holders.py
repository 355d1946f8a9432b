"""Other work on the cluster that holds an upgrade up for a while, during a random upgrade."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.support.random_runs.undoing import undone
from upgrade_manager.api.keys import FLEET_LOCAL, HARVESTER_SYSTEM, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, PROVISIONING_CLUSTERS, UPGRADES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.managers.upgrade import UpgradeRun
    from tests.support.random_runs.interference import Interference

_UPGRADE, _JOINING = "hvst-upgrade-others", "joins"
_RUNNING = {"harvesterhci.io/upgradeState": "UpgradingNodes"}


async def built_in_upgrade(stage: UpgradeRun, act: Interference) -> None:
    """Let an upgrade of Harvester's own run."""
    head = {"apiVersion": UPGRADES.api_version, "kind": UPGRADES.kind}
    metadata = {"name": _UPGRADE, "namespace": HARVESTER_SYSTEM, "labels": _RUNNING}

    async def end() -> None:
        await stage.client.delete(UPGRADES, _UPGRADE, namespace=HARVESTER_SYSTEM)

    async with undone(end):
        with suppress(AlreadyExists):
            await stage.client.create(UPGRADES, {**head, "metadata": metadata, "spec": {"version": "v1.8.0"}})
        await asyncio.sleep(act.lasts)


async def machine_joins(stage: UpgradeRun, act: Interference) -> None:
    """Let a node join that is given up."""
    head = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind}
    metadata = {"name": _JOINING, "namespace": FLEET_LOCAL}
    spec: dict[str, Any] = {"clusterName": "local", "bootstrap": {}, "infrastructureRef": {}}

    async def leave() -> None:
        await stage.client.delete(MACHINES, _JOINING, namespace=FLEET_LOCAL)

    async with undone(leave):
        with suppress(AlreadyExists):
            await stage.client.create(MACHINES, {**head, "metadata": metadata, "spec": spec})
        status = MergePatch({"status": {"phase": "Provisioning"}})
        await stage.client.patch(MACHINES, _JOINING, status, namespace=FLEET_LOCAL, subresource="status")
        await asyncio.sleep(act.lasts)


async def rancher_provisions(stage: UpgradeRun, act: Interference) -> None:
    """Let Rancher update the cluster."""

    async def end() -> None:
        await _set_updated(stage, "True")

    async with undone(end):
        await _set_updated(stage, "Unknown")
        await asyncio.sleep(act.lasts)


async def _set_updated(stage: UpgradeRun, status: str) -> None:
    cluster = await stage.client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
    others = [one for one in objects.status(cluster).get("conditions") or [] if one["type"] != "Updated"]
    patch = MergePatch({"status": {"conditions": [*others, {"type": "Updated", "status": status}]}})
    await stage.client.patch(
        PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, patch, namespace=FLEET_LOCAL, subresource="status"
    )


HOLDERS: dict[str, Callable[[UpgradeRun, Interference], Awaitable[None]]] = {
    "a built-in upgrade runs": built_in_upgrade,
    "a Machine joins": machine_joins,
    "Rancher provisions": rancher_provisions,
}
