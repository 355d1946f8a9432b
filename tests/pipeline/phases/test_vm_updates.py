"""KubeVirt's updates of VMs are suspended before the Job of the cluster upgrade: the waits, and the ends of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.virtual_time import virtual_now
from tests.pipeline.settings.test_update_methods import change, installed, strategy, values
from tests.support.cluster.harvester import RELEASE
from upgrade_manager.api.keys import FLEET_LOCAL, HARVESTER_SYSTEM
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.blockers.deadlines import DEPLOYED, earliest
from upgrade_manager.blockers.table import FINDERS
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import JOBS, KUBEVIRTS, MANAGED_CHARTS
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.phases.cluster_upgrade import ClusterUpgrade

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext

CHART = f"ManagedChart {FLEET_LOCAL}/harvester"
NOT_EMPTY = "Fleet has not emptied workloadUpdateMethods of KubeVirt harvester-system/kubevirt: "
PAUSED = "it is paused, set spec.paused to false to continue"
UNPAUSE = (
    "kubectl patch -n fleet-local managedcharts.management.cattle.io/harvester --type merge "
    """-p '{"spec":{"paused":false}}'"""
)
SHOW = (
    "kubectl describe -n fleet-local managedcharts.management.cattle.io/harvester bundles.fleet.cattle.io/mcc-harvester"
)


async def status(cluster: Harvester, *, ready: bool, message: str = "") -> None:
    """Let Fleet report the chart."""
    condition = {"type": "Ready", "status": str(ready), "message": message}
    await cluster.finish(MANAGED_CHARTS, "harvester", FLEET_LOCAL, {"conditions": [condition]})


async def deploy(cluster: Harvester, methods: list[str]) -> None:
    """Let Fleet change KubeVirt."""
    patch = MergePatch({"spec": strategy(methods)})
    await cluster.client.patch(KUBEVIRTS, "kubevirt", patch, namespace=HARVESTER_SYSTEM)


async def entered(cluster: Harvester) -> ReconcileContext:
    """Enter the phase."""
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    assert await ClusterUpgrade().enter(ctx) is None
    ctx.status.record(PhaseName.CLUSTER_UPGRADE.active)
    return ctx


async def run(cluster: Harvester, ctx: ReconcileContext) -> tuple[str, str]:
    """Return detail and remedy of the wait before the Job; empty texts once the Job exists."""
    result = await ClusterUpgrade().run(ctx)
    assert isinstance(result, Waiting)
    if await cluster.names(JOBS):
        return "", ""
    (wait,) = result.waits
    assert result.message == f"{CHART}: waiting until KubeVirt's updates of VMs are suspended"
    assert earliest(FINDERS, [wait], now=virtual_now()) == pytest.approx(DEPLOYED.total_seconds(), abs=5)
    return wait.detail, "".join(one.command for one in getattr(wait, "remedies", ()))


async def test_job_follows_once_fleet_has_deployed_the_list(cluster: Harvester) -> None:
    await installed(cluster)
    await status(cluster, ready=True)
    ctx = await entered(cluster)
    assert await run(cluster, ctx) == ("Fleet has not deployed the change yet", SHOW)
    assert [entry["kind"] for entry in ctx.raw["status"]["ledger"]] == ["UpdateMethods"] * 3
    assert cluster.recorder.recorded[-1][0] == "SettingChanged"
    assert await run(cluster, ctx) == (f"{NOT_EMPTY}Fleet reports no reason", SHOW)
    await status(cluster, ready=False, message="WaitApplied(1)")
    assert await run(cluster, ctx) == (f"{NOT_EMPTY}WaitApplied(1)", SHOW)
    await deploy(cluster, [])
    assert await run(cluster, ctx) == ("it is not ready: WaitApplied(1)", SHOW)
    await status(cluster, ready=True)
    assert await run(cluster, ctx) == ("", "")
    # The process that has created the Job may have died before it recorded the event.
    cluster.recorder.recorded.clear()
    await run(cluster, cluster.context(ctx.raw))
    assert [reason for reason, _ in cluster.recorder.recorded] == ["SettingChanged"]


async def test_paused_chart_is_named_with_its_remedy(cluster: Harvester) -> None:
    await installed(cluster)
    await status(cluster, ready=True)
    await change(cluster, paused=True)
    ctx = await entered(cluster)
    await run(cluster, ctx)
    assert await run(cluster, ctx) == (f"{NOT_EMPTY}Fleet reports no reason; {PAUSED}", UNPAUSE)


async def test_job_that_was_deleted_has_paused_the_chart(cluster: Harvester) -> None:
    await installed(cluster)
    ctx = await entered(cluster)
    await run(cluster, ctx)
    await deploy(cluster, [])
    await status(cluster, ready=False)
    await change(cluster, paused=True)
    assert await run(cluster, ctx) == ("", "")


async def _another_list(cluster: Harvester) -> None:
    await change(cluster, values=values(["Evict"]))


async def _no_kubevirt(cluster: Harvester) -> None:
    await cluster.client.delete(KUBEVIRTS, "kubevirt", namespace=HARVESTER_SYSTEM)


async def _no_chart(cluster: Harvester) -> None:
    await cluster.client.delete(MANAGED_CHARTS, "harvester", namespace=FLEET_LOCAL)


@pytest.mark.parametrize("act", [_another_list, _no_kubevirt, _no_chart])
async def test_upgrade_does_not_wait_for_what_users_change(cluster: Harvester, act: Any) -> None:
    await installed(cluster)
    ctx = await entered(cluster)
    assert await run(cluster, ctx) != ("", "")
    await act(cluster)
    assert await run(cluster, ctx) == ("", "")


async def test_list_that_is_empty_already_is_left_alone(cluster: Harvester) -> None:
    await installed(cluster, methods=[], deployed=["LiveMigrate"])
    ctx = await entered(cluster)
    assert await run(cluster, ctx) == ("", "")


async def test_other_writer_of_kubevirt_is_named(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    await installed(cluster)
    ctx = await entered(cluster)
    await run(cluster, ctx)
    monkeypatch.setattr("upgrade_manager.facts.update_methods.other_writer", lambda _: "kubectl-edit")
    written = "kubectl-edit has written it, and Fleet refuses to change it"
    assert await run(cluster, ctx) == (NOT_EMPTY + written, SHOW)
