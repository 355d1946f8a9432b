"""The entries that Jobs have recorded."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.harvester import RECORDED, Harvester
from upgrade_manager.api.ledger import LedgerKind, new_entry
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, VIRTUAL_MACHINES
from upgrade_manager.pipeline import job_ledger, ledger
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending import settlement
from upgrade_manager.resources.job_ledger import entries_of, ledger_map
from upgrade_manager.resources.owner import Owner

SINCE = "2026-01-01T00:00:00Z"
PLACE, OWN = "harvester-system", {**RECORDED, "kind": "own"}
ENTRIES = [
    new_entry(LedgerKind.STOPPED_VM, "default", name, object_=f"VirtualMachine default/{name}", since=SINCE)
    for name in ("db", "web")
]


async def found(cluster: Harvester) -> Any:
    return await cluster.find(CONFIG_MAPS, "up-ledger", PLACE)


async def recorded(cluster: Harvester, *, toolkit: Any = OWN, uid: str = "") -> ReconcileContext:
    """Create a plan whose Jobs have recorded two VMs."""
    ctx = cluster.context(await cluster.plan(toolkit=toolkit))
    await cluster.put(CONFIG_MAPS, ledger_map(Owner(name="up", uid=uid or ctx.owner.uid), ENTRIES))
    return ctx


@pytest.mark.rule("nodes: what Jobs have recorded is copied into the ledger, and removed from both once it is settled")
async def test_entries_are_copied_and_settled_in_both(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    await job_ledger.copy(ctx)
    assert ledger.entries(ctx) == ENTRIES
    await job_ledger.settle(ctx, [])
    await job_ledger.settle(ctx, [ENTRIES[0]["id"], "other"])
    assert ledger.entries(ctx) == entries_of(await found(cluster)) == ENTRIES[1:]


async def test_vms_that_are_off_are_named_until_that_is_written(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    for name in ("db", "web"):
        metadata = {"name": name, "namespace": "default"}
        template: dict[str, Any] = {"spec": {"domain": {"devices": {}}}}
        spec = {"runStrategy": "Halted", "template": template}
        await cluster.put(VIRTUAL_MACHINES, {"metadata": metadata, "spec": spec})
    for _ in range(2):
        # The status of the former reconcile was not written.
        ctx = cluster.context(ctx.raw)
        assert await settlement.settle(ctx) is None
        assert (await settlement.name_settled(ctx)).endswith("are off; start them: default/db, default/web")
        assert ledger.entries(ctx) == []


@pytest.mark.parametrize(
    ("toolkit", "uid"),
    [pytest.param(RECORDED, "", id="Harvester's toolkit"), pytest.param(OWN, "earlier", id="of an earlier plan")],
)
async def test_other_maps_are_not_read(cluster: Harvester, toolkit: Any, uid: str) -> None:
    ctx = await recorded(cluster, toolkit=toolkit, uid=uid)
    await job_ledger.copy(ctx)
    await job_ledger.release(ctx, [])
    assert ledger.entries(ctx) == []
    assert entries_of(await found(cluster)) == ENTRIES


@pytest.mark.parametrize("uid", ["", "earlier"])
async def test_only_the_map_of_an_earlier_plan_is_stale(cluster: Harvester, uid: str) -> None:
    await job_ledger.discard_stale(cluster.context(await cluster.plan("other", toolkit=OWN)))
    ctx = await recorded(cluster, uid=uid)
    await job_ledger.discard_stale(ctx)
    assert (await found(cluster) is None) == bool(uid)


async def test_map_goes_with_the_last_job_that_writes_it(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "uid": "j"}}
    for _ in range(2):
        await job_ledger.release(ctx, [job])
    (owner,) = objects.metadata(await found(cluster))["ownerReferences"]
    assert (owner["kind"], owner["uid"], "controller" in owner) == (JOBS.kind, "j", False)
    await job_ledger.release(ctx, [])
    assert await found(cluster) is None
