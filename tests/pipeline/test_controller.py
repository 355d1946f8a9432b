from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hack.faults.middleware import Middleware
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.simulate import Simulate
from tests.support.managers.manager_process import ManagerProcess
from tests.support.managers.upgrade import UpgradeRun, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import ANNOTATION_PENDING_OS_IMAGE, ANNOTATION_SKIP_DISK_CHECK
from upgrade_manager.cli import leader
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.reflector import WATCH_TIMEOUT
from upgrade_manager.kube.resources import LEASES, NODES, UPGRADE_PLANS
from upgrade_manager.kube.retry import Backoff
from upgrade_manager.pipeline import controller
from upgrade_manager.pipeline.controller import NAME, STALE_TIMEOUT, PlanController
from upgrade_manager.pipeline.dependencies import Dependencies
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.leader_election import LeaseLost
from upgrade_manager.runtime.lease import RENEW_DEADLINE

ELECTED = RunOptions(leader_elect=True)
#: Virtual seconds until a standby writes after its leader has stopped or was killed.
CLEAN, KILLED = 5.0, 20.0
POLL_INTERVAL = 0.1


def candidate(stage: UpgradeRun, seed: str) -> ManagerProcess:
    """Return one of several replicas."""
    return replace(stage.life(seed=seed), options=ELECTED)


def writes_of(life: ManagerProcess) -> list[str]:
    """Return the manager's writes, except those of leases."""
    return [write for write in life.wire.writes if "/leases" not in write]


async def elected(simulation: Simulation) -> None:
    """Wait until a manager leads."""

    async def holders() -> list[str]:
        leases = (await simulation.client().list(LEASES, namespace="harvester-system")).items
        return [holder for lease in leases if (holder := objects.spec(lease).get("holderIdentity"))]

    await eventually(holders)


@asynccontextmanager
async def leader_and_standby(
    simulation: Simulation,
) -> AsyncIterator[tuple[UpgradeRun, ManagerProcess, ManagerProcess]]:
    """Run both until nodes are upgraded."""
    stage = await UpgradeRun.set_up(simulation)
    async with candidate(stage, "one") as leader:
        await elected(simulation)
        async with candidate(stage, "two") as standby:
            await stage.create_plan()
            await stage.until("NodeUpgrading")
            yield stage, leader, standby


async def first_write(life: ManagerProcess) -> float:
    """Return the seconds until the manager's first write."""
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(600):
        while not writes_of(life):  # noqa: ASYNC110  # of another process
            await asyncio.sleep(POLL_INTERVAL)
    return asyncio.get_running_loop().time() - began


def queue_sample(life: ManagerProcess, name: str) -> float | None:
    labels = {"name": NAME, "controller": NAME}
    return life.metrics.registry.get_sample_value(f"workqueue_{name}", labels)


@pytest.mark.full
@pytest.mark.rule("pipeline: only the reconciler writes a plan's status")
@pytest.mark.servers
@pytest.mark.parametrize(
    ("kill", "within"),
    [pytest.param(True, KILLED, id="was killed"), pytest.param(False, CLEAN, id="stopped")],
)
@pytest.mark.thin
async def test_standby_writes_and_queues_nothing_until_its_leader(
    simulate: Simulate, *, kill: bool, within: float
) -> None:
    async with simulate() as simulation, leader_and_standby(simulation) as (stage, leader, standby):
        assert writes_of(standby) == []
        assert (queue_sample(standby, "adds_total"), queue_sample(standby, "depth")) == (0, 0)
        if kill:
            await leader.kill()
        else:
            await leader.__aexit__(None, None, None)
        assert await first_write(standby) <= within
        plan = await stage.succeed()
        if not simulation.backend.has_controllers:
            assert (queue_sample(standby, "queue_duration_seconds_sum") or 0) < 1
    assert objects.status(plan)["provisionGeneration"] == 4
    # Both may have tried to create the lease, and the standby repeats events.
    assert [one for one in stage.ledger.conflicts if "/leases" not in one and "/events" not in one] == []


async def test_leader_without_its_lease_ends_at_once() -> None:
    async with Simulation() as simulation:
        stage, middleware = await UpgradeRun.set_up(simulation), simulation.middleware
        leader = candidate(stage, "one")
        await leader.__aenter__()
        refuse(middleware, "create", resource="events")
        await stage.create_plan()
        await stage.until("NodeUpgrading")
        # Events are pending by now. The deadline begins with a renewal.
        middleware.counts.clear()
        await eventually(partial(renewals, middleware))
        renewed_at = asyncio.get_running_loop().time()
        refuse(middleware, "get", "update", resource=LEASES.name)
        with pytest.raises(LeaseLost):
            await leader.ended()
        assert round(asyncio.get_running_loop().time() - renewed_at, 3) <= RENEW_DEADLINE


def refuse(middleware: Middleware, *verbs: str, resource: str) -> None:
    """Respond with 503 to these requests."""
    middleware.add(Rule(match=Match(verbs=verbs, resource=resource), action=Refuse(status=503)))


async def renewals(middleware: Middleware) -> int:
    """Return the number of renewals of the lease."""
    return middleware.counts.total(verb="update", resource=LEASES.name)


@pytest.fixture
def controllers(monkeypatch: pytest.MonkeyPatch) -> list[PlanController]:
    """Return the controllers of the managers that start."""
    made: list[PlanController] = []

    def recorded(deps: Dependencies) -> PlanController:
        made.append(PlanController(deps))
        return made[-1]

    monkeypatch.setattr(leader, "PlanController", recorded)
    return made


async def test_failed_import_is_unhealthy_and_retried(
    monkeypatch: pytest.MonkeyPatch, controllers: list[PlanController]
) -> None:
    failures = [ImportError("no module"), OSError()]

    async def fail(_: str) -> None:
        if failures:
            raise failures[-1]

    monkeypatch.setattr(controller, "import_outside_loop", fail)
    async with Simulation(actors=False) as simulation, started(simulation) as stage:
        for message in ("OSError", "no module"):
            await asyncio.sleep(60)
            with pytest.raises(Unhealthy, match=f"cannot import the reconciler: {message}"):
                await controllers[0].check()
            assert await stage.phase() == ""
            failures.pop()
        await asyncio.sleep(60)
        await controllers[0].check()
        assert await stage.phase() != ""


@pytest.mark.parametrize(
    "resource", ["upgradeplans.management.harvesterhci.io", "virtualmachineimages.harvesterhci.io"]
)
async def test_cache_without_a_watch_for_long_is_not_ready(controllers: list[PlanController], resource: str) -> None:
    fault = Rule(match=Match(verbs=("list", "watch"), resource=resource), action=Refuse(status=503))
    annotations = {ANNOTATION_SKIP_DISK_CHECK: "true"}
    async with Simulation(actors=False) as simulation, started(simulation, annotations=annotations) as stage:
        await stage.until("ISODownloading")
        await controllers[0].ready()
        simulation.middleware.add(fault)
        # The open watch ends by its timeout.
        await asyncio.sleep(WATCH_TIMEOUT[1] + STALE_TIMEOUT + 60)
        with pytest.raises(Unhealthy, match=rf"cannot watch {resource} for \d+ s"):
            await controllers[0].ready()
        simulation.middleware.remove(fault)
        await asyncio.sleep(2 * Backoff.CAP)
        await controllers[0].ready()


@pytest.mark.parametrize(
    ("changes", "subresource", "least"),
    [
        pytest.param([{"metadata": {"annotations": {"a": "b"}}}], "", 1, id="an annotation: one"),
        pytest.param(
            [{"status": {"previousVersion": f"v{step}"}} for step in range(5)], "status", 0, id="the status: none"
        ),
    ],
)
async def test_only_changes_by_users_trigger_a_reconcile(changes: list[Any], subresource: str, least: int) -> None:
    async with Simulation(actors=False) as simulation, started(simulation, {"version": "v9.9.9"}) as stage:
        # The Version does not exist: retried every ten seconds by now.
        await asyncio.sleep(120)
        counts = simulation.middleware.counts
        counts.clear()
        for change in changes:
            await stage.client.patch(UPGRADE_PLANS, stage.name, MergePatch(change), subresource=subresource)
            await asyncio.sleep(POLL_INTERVAL)
        assert least <= counts.total(verb="get", resource="versions.harvesterhci.io") <= 1


@pytest.mark.rule("pipeline: annotations of other programs on a node trigger no reconcile")
@pytest.mark.parametrize(
    ("annotation", "reconciles"),
    [
        pytest.param("csi.volume.kubernetes.io/nodeid", 0, id="of another program: none"),
        pytest.param(ANNOTATION_PENDING_OS_IMAGE, 1, id="of the manager: one"),
    ],
)
async def test_only_own_node_annotations_trigger_a_reconcile(annotation: str, reconciles: int) -> None:
    async with Simulation(actors=False) as simulation, started(simulation, {"version": "v9.9.9"}) as stage:
        # The Version does not exist: retried every ten seconds by now.
        await asyncio.sleep(120)
        counts = simulation.middleware.counts
        while counts.total(verb="get", resource="versions.harvesterhci.io"):
            counts.clear()
            await asyncio.sleep(POLL_INTERVAL)
        await stage.client.patch(NODES, "node-0", MergePatch({"metadata": {"annotations": {annotation: "x"}}}))
        await asyncio.sleep(POLL_INTERVAL)
        assert counts.total(verb="get", resource="versions.harvesterhci.io") == reconciles
