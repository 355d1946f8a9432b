"""The condition that Harvester does not recover VMs while a plan waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.cluster.harvester import Harvester
from upgrade_manager.api.conditions import VM_RECOVERY_OFF, find_condition
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import SETTINGS
from upgrade_manager.pipeline import vm_recovery
from upgrade_manager.pipeline.context import ReconcileContext

TODO = "Delete the plan"


async def running(cluster: Harvester, version: str) -> ReconcileContext:
    ctx = cluster.context(await cluster.plan())
    await cluster.put(SETTINGS, {"metadata": {"name": "server-version"}, "value": version})
    return ctx


def message(ctx: ReconcileContext) -> str:
    return str((find_condition(ctx.status["conditions"], VM_RECOVERY_OFF) or {}).get("message") or "")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("v1.8.2", False, id="before"),
        pytest.param("v1.9.0-rc1", True, id="a candidate"),
        pytest.param("v1.9.0", True, id="the first"),
        pytest.param("v1.10.0", True, id="a later one"),
        pytest.param("v2.0.0", True, id="the next major"),
        pytest.param("master-1a2b3c4d", True, id="a development build"),
        pytest.param("v", False, id="no version"),
    ],
)
async def test_release_decides(cluster: Harvester, version: str, *, expected: bool) -> None:
    ctx = await running(cluster, version)
    since = ctx.now() - timedelta(hours=2)
    assert await vm_recovery.report(ctx, since=since, todo=TODO) is None
    text = f"Harvester {version} recovers no VM of a node that is down until UpgradePlan up ends. Delete the plan"
    assert message(ctx) == (text if expected else "")


async def test_short_wait_is_not_reported(cluster: Harvester) -> None:
    ctx = await running(cluster, "v1.9.0")
    assert await vm_recovery.report(ctx, since=ctx.now() - timedelta(minutes=59), todo=TODO) == pytest.approx(60, abs=2)
    assert message(ctx) == ""


async def test_condition_goes_with_the_wait(cluster: Harvester) -> None:
    ctx = await running(cluster, "v1.9.0")
    await vm_recovery.report(ctx, since=ctx.now() - timedelta(hours=1), todo=TODO)
    assert message(ctx)
    vm_recovery.clear(ctx)
    assert message(ctx) == ""


async def test_release_is_read_once(cluster: Harvester) -> None:
    ctx = await running(cluster, "v1.8.0")
    since = ctx.now() - timedelta(hours=2)
    await vm_recovery.report(ctx, since=since, todo=TODO)
    await cluster.client.patch(SETTINGS, "server-version", MergePatch({"value": "v1.9.0"}))
    await vm_recovery.report(ctx, since=since, todo=TODO)
    assert message(ctx) == ""
