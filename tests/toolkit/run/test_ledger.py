"""Jobs record what they are about to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.vm_world import FIXED, FREE, vm_world
from tests.support.toolkit.toolkit import PLAN, ToolkitWorld
from upgrade_manager.api.keys import LABEL_PLAN_UID
from upgrade_manager.api.ledger import LedgerKind, new_entry
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, UPGRADE_PLANS
from upgrade_manager.resources.job_ledger import entries_of
from upgrade_manager.toolkit.run import ledger
from upgrade_manager.toolkit.vms.vm_shutdown import stop_all_vms

PLACE = "harvester-system"
ENTRY = new_entry(LedgerKind.FILE, "node-0", "x", object_="File node-0/x", since="2026-01-01T00:00:00Z")
OTHER = new_entry(LedgerKind.FILE, "node-0", "y", object_="File node-0/y", since="2026-01-01T00:00:00Z")


async def runs(world: ToolkitWorld, kind: str) -> None:
    """Let the plan's Jobs run the toolkit of that kind."""
    image = {"repository": "r", "tag": "t", "kind": kind}
    patch = MergePatch({"status": {"toolkitImage": image}})
    await world.client.patch(UPGRADE_PLANS, PLAN, patch, subresource="status")


async def found(world: ToolkitWorld) -> Any:
    return await world.client.find(CONFIG_MAPS, f"{PLAN}-ledger", namespace=PLACE)


@pytest.mark.rule("nodes: the toolkit's Jobs record each VM in the ConfigMap PLAN-ledger before they stop it")
async def test_stopped_vms_are_recorded(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, FREE) as world:
        await runs(world, "own")
        await stop_all_vms(world.context())
        recorded = entries_of(await found(world))
        assert {entry["object"] for entry in recorded} == {
            "VirtualMachine default/fixed",
            "VirtualMachine default/free",
        }
        plan = await world.client.get(UPGRADE_PLANS, PLAN)
        assert objects.labels(await found(world))[LABEL_PLAN_UID] == objects.uid(plan)


async def test_entries_are_added_once(tmp_path: Path) -> None:
    async with vm_world(tmp_path) as world:
        await runs(world, "own")
        for entries in ([], [ENTRY], [ENTRY], [ENTRY, OTHER]):
            before = await found(world)
            await ledger.record(world.context(), entries)
        assert objects.resource_version(before) != objects.resource_version(await found(world))
        assert entries_of(before) == [ENTRY]
        assert entries_of(await found(world)) == [ENTRY, OTHER]


@pytest.mark.parametrize("kind", ["harvester", ""], ids=["Harvester's toolkit", "no plan"])
async def test_nothing_is_recorded_where_nothing_reads_it(tmp_path: Path, kind: str) -> None:
    async with vm_world(tmp_path) as world:
        if kind:
            await runs(world, kind)
        else:
            await world.client.delete(UPGRADE_PLANS, PLAN)
        await ledger.record(world.context(), [ENTRY])
        assert await found(world) is None


async def test_nothing_is_recorded_for_another_plan(tmp_path: Path) -> None:
    async with vm_world(tmp_path) as world:
        await runs(world, "own")
        await ledger.record(world.context(plan_uid="of-an-earlier-plan"), [ENTRY])
        assert await found(world) is None


async def test_map_of_an_earlier_plan_is_not_written(tmp_path: Path) -> None:
    async with vm_world(tmp_path) as world:
        await runs(world, "own")
        await world.client.create(CONFIG_MAPS, {"metadata": {"name": f"{PLAN}-ledger", "namespace": PLACE}})
        with pytest.raises(Conflict, match="belongs to another plan"):
            await ledger.record(world.context(), [ENTRY])


async def test_map_that_another_job_creates_meanwhile_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with vm_world(tmp_path) as world:
        await runs(world, "own")

        async def refuse(*_: Any, **__: Any) -> None:
            raise AlreadyExists("it exists")

        monkeypatch.setattr(world.client, "create", refuse)
        with pytest.raises(Conflict, match="it exists"):
            await ledger.record(world.context(), [ENTRY])
