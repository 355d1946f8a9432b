from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.ending.test_failed_jobs import put_failed_job
from tests.support.server.lost_responses import responses_lost
from upgrade_manager.api.ledger import LedgerKind
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import JOBS, SUC_PLANS, UPGRADE_PLANS
from upgrade_manager.pipeline import host_changes, ledger
from upgrade_manager.pipeline.host_changes import CHANGES, HOLD, SKIP, HostChange
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases import host_plans

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext

EACH = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.apply)
FAILED = {"conditions": [{"type": "Complete", "status": "False", "reason": "JobFailed", "message": "Job x failed"}]}


async def prepared(cluster: Harvester, *nodes: str, **status: Any) -> ReconcileContext:
    await cluster.nodes(*(nodes or ("n1", "n2")))
    return cluster.context(await cluster.plan(status={"currentPhase": "NodeUpgrading", **status}))


async def reread(cluster: Harvester) -> ReconcileContext:
    return cluster.context(await cluster.client.get(UPGRADE_PLANS, "up"))


def name(component: str) -> str:
    return f"up-{component}"


@EACH
async def test_entry_is_written_before_the_plan(cluster: Harvester, change: HostChange) -> None:
    ctx = await prepared(cluster)
    found = await host_plans.apply(ctx, change)
    assert isinstance(found, Waiting)
    assert (found.message, found.detail) == (
        f"Plan cattle-system/{name(change.apply)}: {change.works[change.apply]}",
        "done on 0 of 2 nodes",
    )
    stored = await cluster.client.get(UPGRADE_PLANS, "up")
    assert [entry["id"] for entry in objects.status(stored)["ledger"]] == [change.id]
    spec = (await cluster.client.get(SUC_PLANS, name(change.apply), namespace="cattle-system"))["spec"]
    assert spec["upgrade"]["command"] == ["chroot", "/host", "/bin/sh", "-c"]
    assert spec["upgrade"]["args"] == [change.scripts[change.apply]]
    assert spec["concurrency"] == (change.concurrency or 2)


@EACH
async def test_unfinished_node_is_named(cluster: Harvester, change: HostChange) -> None:
    ctx = await prepared(cluster)
    await host_plans.apply(ctx, change)
    await cluster.complete_plan(name(change.apply), "n1")
    plan = await cluster.client.get(SUC_PLANS, name(change.apply), namespace="cattle-system")
    labels = {**objects.labels(plan), "upgrade.cattle.io/node": "n2"}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "upgrade", "image": "x"}]}}
    await cluster.put(
        JOBS,
        {"metadata": {"name": "apply", "namespace": "cattle-system", "labels": labels}, "spec": {"template": template}},
    )
    found = await host_plans.apply(ctx, change)
    assert isinstance(found, Waiting)
    assert found.detail == "done on 1 of 2 nodes, waiting for n2"
    assert [wait.name for wait in found.waits] == ["apply"]
    assert ctx.status.known_nodes() == set()


@EACH
async def test_plan_of_all_nodes_is_complete(cluster: Harvester, change: HostChange) -> None:
    ctx = await prepared(cluster)
    await host_plans.apply(ctx, change)
    await cluster.complete_plan(name(change.apply), "n1", "n2")
    assert isinstance(await host_plans.apply(ctx, change), Completed)


@EACH
async def test_undoing_follows_the_removal_of_the_first_plan(cluster: Harvester, change: HostChange) -> None:
    ctx = await prepared(cluster)
    await host_plans.apply(ctx, change)
    ctx = await reread(cluster)
    assert isinstance(await host_plans.undo(ctx, succeeds=False), Waiting)
    assert await cluster.names(SUC_PLANS) == []
    assert isinstance(await host_plans.undo(ctx, succeeds=False), Waiting)
    assert await cluster.names(SUC_PLANS) == [name(change.undo)]
    await cluster.complete_plan(name(change.undo), "n1", "n2")
    assert await host_plans.undo(ctx, succeeds=False) is None
    assert ledger.entries(ctx, change.kind) == []


@EACH
async def test_completed_phase_is_written_before_the_undoing(cluster: Harvester, change: HostChange) -> None:
    ctx = await prepared(cluster)
    await host_plans.apply(ctx, change)
    await host_plans.record_before_undo(ctx)
    assert objects.status(ctx.raw)["currentPhase"] == "NodeUpgrading"
    ctx.status.record("NodeUpgraded")
    await host_plans.record_before_undo(ctx)
    stored = await cluster.client.get(UPGRADE_PLANS, "up")
    assert objects.status(stored)["currentPhase"] == "NodeUpgraded"
    assert await cluster.names(SUC_PLANS) == [name(change.apply)]
    undoing = await host_plans.undo(ctx, succeeds=True)
    assert isinstance(undoing, Waiting)
    ctx.status.waiting(undoing.message, undoing.detail)
    assert not await ctx.persist()


async def test_nothing_is_written_without_a_change_to_undo(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    ctx.status.record("NodeUpgraded")
    await host_plans.record_before_undo(ctx)
    assert objects.status(await cluster.client.get(UPGRADE_PLANS, "up"))["currentPhase"] == "NodeUpgrading"


@pytest.mark.rule("pipeline: Failed keeps the failed Job and its Pods until the plan succeeds or is deleted")
@EACH
async def test_failed_job_stays_after_an_interruption(cluster: Harvester, change: HostChange) -> None:
    ctx = await prepared(cluster, currentPhase="Failed")
    await host_plans.apply(ctx, change)
    plan = await cluster.client.get(SUC_PLANS, name(change.apply), namespace="cattle-system")
    await put_failed_job(cluster, plan)
    with responses_lost(ctx.client, "delete_collection"), pytest.raises(Transient):
        await host_plans.discard(ctx, change)
    ctx = await reread(cluster)
    for _ in range(2):
        assert await host_plans.discard(ctx, change)
    assert await cluster.names(SUC_PLANS) == []
    job = await cluster.find(JOBS, "apply", "cattle-system")
    assert objects.owner_uid(job) == ctx.owner.uid
    assert "ttlSecondsAfterFinished" not in objects.spec(job)
    assert [write.resource for write in ctx.writes] == [JOBS]


async def test_nothing_that_has_not_begun_is_undone(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    assert await host_plans.undo(ctx, succeeds=True) is None
    assert await cluster.names(SUC_PLANS) == []


async def test_entry_of_an_earlier_plan_is_undone(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    ledger.put(ctx, [HOLD.new_entry(ctx), SKIP.new_entry(ctx)])
    assert isinstance(await host_plans.undo(ctx, succeeds=True), Waiting)
    assert sorted(await cluster.names(SUC_PLANS)) == ["up-agent-release", "up-skip-off"]


@EACH
async def test_failed_plan_leaves_the_entry_and_names_nodes(cluster: Harvester, change: HostChange) -> None:
    ctx = await prepared(cluster)
    ledger.put(ctx, [change.new_entry(ctx)])
    await host_plans.undo(ctx, succeeds=True)
    await cluster.finish(SUC_PLANS, name(change.undo), "cattle-system", FAILED)
    assert await host_plans.undo(ctx, succeeds=True) is None
    assert [entry["id"] for entry in ledger.entries(ctx, LedgerKind.HOLD, LedgerKind.FILE)] == [change.id]
    assert [reason for reason, _ in cluster.recorder.recorded] == ["HostChangeLeft"]
    assert await host_changes.left(ctx) == [Remedy(f"Nodes n1, n2 {change.left}", command=change.command)]


async def test_failed_plan_fails_the_phase(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    await host_plans.apply(ctx, SKIP)
    await cluster.finish(SUC_PLANS, "up-skip-on", "cattle-system", FAILED)
    assert isinstance(await host_plans.apply(ctx, SKIP), Failed)


async def test_plan_without_an_image_undoes_nothing(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(toolkit=None))
    ledger.put(ctx, [SKIP.new_entry(ctx)])
    assert await host_plans.undo(ctx, succeeds=False) is None
