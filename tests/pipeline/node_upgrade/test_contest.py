from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.managers.upgrade import condition
from upgrade_manager.kube import objects
from upgrade_manager.pipeline import blocker_report
from upgrade_manager.pipeline.node_upgrade.contest import OVER, TIMES, Contest

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.informers import PlanInformers

WRITTEN: dict[str, Any] = {"f:spec": {"f:rkeConfig": {"f:upgradeStrategy": {}}}}
#: Rancher's cluster, whose strategy another client has written last.
CLUSTER: dict[str, Any] = {"metadata": {"managedFields": [{"manager": "rival", "fieldsV1": WRITTEN}]}}
SECONDS = 5


@pytest.fixture
async def ctx(cluster: Harvester, informers: PlanInformers) -> ReconcileContext:
    plan = await cluster.plan(status={"currentPhase": "NodeUpgrading"})
    return replace(cluster.context(plan), informers=informers)


async def removed(contest: Contest, ctx: ReconcileContext, times: int) -> list[bool]:
    """Let the client remove the hooks every few seconds; return which removals need no event."""
    found = []
    for _ in range(times):
        found.append(contest.record(ctx, CLUSTER))
        await asyncio.sleep(SECONDS)
    return found


@pytest.mark.rule("blockers: drain hooks that are removed again and again are one blocker that names the client")
async def test_third_removal_begins_the_contest(ctx: ReconcileContext) -> None:
    contest, began = Contest(), ctx.now()
    assert await removed(contest, ctx, TIMES - 1) == [False] * (TIMES - 1)
    assert list(contest.waits(ctx)) == []
    assert await removed(contest, ctx, 10) == [True] * 10
    (wait,) = contest.waits(ctx)
    assert (wait.namespace, wait.name, wait.since) == ("fleet-local", "local", began)
    assert wait.detail == (
        "client rival removes the manager's drain hooks from spec.rkeConfig.upgradeStrategy again and again"
    )
    blocker_report.report(ctx, [wait])
    assert condition({"status": ctx.status.fields}, "Stalled")[:2] == ("True", "StrategyContested")


async def test_contest_is_over_some_minutes_later(ctx: ReconcileContext) -> None:
    contest = Contest()
    await removed(contest, ctx, TIMES)
    await asyncio.sleep(OVER.total_seconds() - SECONDS - 1)
    assert len(list(contest.waits(ctx))) == 1
    await asyncio.sleep(1)
    assert list(contest.waits(ctx)) == []
    assert await removed(contest, ctx, 1) == [False]


async def test_recorded_contest_goes_on_after_a_restart(ctx: ReconcileContext) -> None:
    before = Contest()
    await removed(before, ctx, TIMES)
    blocker_report.report(ctx, list(before.waits(ctx)))
    (entry,) = objects.items({"status": ctx.status.fields}, "status", "blockers")
    successor = Contest()
    assert await removed(successor, ctx, 1) == [True]
    (wait,) = successor.waits(ctx)
    assert f"{wait.since:%Y-%m-%dT%H:%M:%SZ}" == entry["since"]
