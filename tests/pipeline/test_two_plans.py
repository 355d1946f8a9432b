"""Two plans at once: one holds the cluster, the other waits in the queue until that one has ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hack.apiserver.call import Call
from hack.faults.forwarding import Forwarding
from hack.faults.middleware import NoHook
from hack.simulation import Simulation
from tests.support.cluster.simulate import Simulate
from tests.support.managers.manager_restarts import InClusterManager
from tests.support.managers.upgrade import BY_VERSION, Ledger, UpgradeRun, condition, phases_of, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import FINALIZER
from upgrade_manager.api.phases import FAILED, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import TIMED_OUT, Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import LONGHORN_SETTINGS, UPGRADE_PLANS
from upgrade_manager.kube.transport import Request, Response, Transport


class LateAcceptance(Forwarding):
    """A transport on which the writes of a plan's status time out, and may arrive later."""

    def __init__(self, inner: Transport, plan: str) -> None:
        super().__init__(inner)
        self._suffix = f"/upgradeplans/{plan}/status"
        self.is_slow = True
        #: The writes that have not arrived.
        self.late: list[Request] = []

    async def send(self, request: Request) -> Response:
        """Send it, unless it is late."""
        if self.is_slow and request.path.endswith(self._suffix):
            self.late.append(request)
            raise Transient(f"{request.path}: timed out", reason=TIMED_OUT)
        return await self._inner.send(request)


class Arrival(NoHook):
    """Lets the first late write arrive right after the status of another plan is written."""

    def __init__(self, late: LateAcceptance, plan: str) -> None:
        self._late = late
        self._write = (plan, "status")
        self.statuses: list[int] = []

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Send the late write, once."""
        _ = (number, response)
        if (call.name, call.subresource) == self._write and self._late.is_slow:
            self._late.is_slow = False
            self.statuses.append((await self._late.send(self._late.late[0])).status)


class Refusing(Forwarding):
    """A transport on which a webhook refuses the finalizer of one plan."""

    def __init__(self, inner: Transport, plan: str) -> None:
        super().__init__(inner)
        self._suffix = f"/upgradeplans/{plan}"

    async def send(self, request: Request) -> Response:
        """Send it, or refuse it."""
        if request.method == "PATCH" and request.path.endswith(self._suffix):
            return Response(status=403, body=b"a webhook refuses the finalizer")
        return await self._inner.send(request)


BLOCKED = ("False", "ConcurrentUpgradeBlocked")
#: The writes of a manager that belong to the acceptance of two plans, and a few more.
ACCEPTANCE = range(1, 9)
#: Seconds in which a manager decides about both.
WHILE = 5.0
#: The conditions of a plan in the queue.
QUEUED = ["Available", "Ready", "Reconciling"]


async def two(simulation: Simulation) -> tuple[UpgradeRun, UpgradeRun]:
    """Create a plan, and prepare another."""
    first = await UpgradeRun.set_up(simulation, name="one")
    await first.create_plan()
    return first, replace(first, name="two")


async def parted(first: UpgradeRun, second: UpgradeRun) -> tuple[UpgradeRun, UpgradeRun]:
    """Return the plan that runs and the one in the queue."""
    plans = [await first.plan(), await second.plan()]
    queued = [condition(plan, "Available")[:2] == BLOCKED for plan in plans]
    assert sorted(queued) == [False, True]
    return (second, first) if queued[0] else (first, second)


def assert_untouched(loser: Object, winner: str) -> None:
    """Check that the queued plan has its conditions and the time, and nothing else."""
    status = objects.status(loser)
    assert sorted(status) == ["conditions", "display", "observedGeneration", "queuedSince"]
    assert (status["display"]["state"], status["display"]["transitioning"]) == ("Queued", True)
    assert sorted(one["type"] for one in status["conditions"]) == QUEUED
    assert (condition(loser, "Reconciling")[:2], condition(loser, "Ready")[:2]) == (
        ("True", "Queued"),
        ("Unknown", "Queued"),
    )
    assert f"UpgradePlan {winner} is in progress" in condition(loser, "Available")[2]
    assert objects.finalizers(loser) == []


@pytest.mark.rule(
    "api: queued: Available=False (ConcurrentUpgradeBlocked) names the holder",
    "api: a queued plan gets no finalizer",
    "api: queued: Progressing is absent and Degraded is unchanged",
    "pipeline: while one plan has Progressing=True others wait in the queue",
    "pipeline: each time in the queue is one Warning event, ConcurrentUpgradeBlocked",
    "pipeline: a queued plan starts by itself once nothing holds the cluster",
    "pipeline: of two plans created simultaneously exactly one runs",
)
@pytest.mark.servers
@pytest.mark.parametrize("later", [False, True], ids=["simultaneously", "later"])
@pytest.mark.thin
async def test_second_plan_starts_after_the_first(simulate: Simulate, *, later: bool) -> None:
    async with simulate("one-node") as simulation:
        first, second = await two(simulation)
        if not later:
            await second.create_plan()
        async with InClusterManager(first, "node-0").running():
            await first.until_decided()
            if later:
                await second.create_plan()
            await second.until_decided()
            winner, loser = await parted(first, second)
            assert winner is first
            assert_untouched(await loser.plan(), winner.name)
            assert await winner.until_ended() == SUCCEEDED
            # The release that the first plan has installed is the second one's, too.
            assert await loser.until_ended() == FAILED
        plan, events = await loser.plan(), await loser.events("ConcurrentUpgradeBlocked")
        assert "queuedSince" not in objects.status(plan)
        assert phases_of(plan)[0] == "Initializing"
        assert [(event["type"], event["count"]) for event in events] == [("Warning", 1)]


@pytest.mark.rule(
    "api: an accepted plan gets the finalizer upgradeplan-cleanup",
    "pipeline: each time in the queue is one Warning event, ConcurrentUpgradeBlocked",
    "pipeline: of two plans created simultaneously exactly one runs",
)
@pytest.mark.parametrize("write", ACCEPTANCE)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.thin
async def test_one_of_two_plans_runs_after_a_crash(write: int, *, after: bool) -> None:
    async with Simulation(actors=False) as simulation:
        first, second = await two(simulation)
        await second.create_plan()
        async with first.life(die_at=write, after=after):
            await asyncio.sleep(WHILE)
        async with first.life(seed="successor"):
            await asyncio.sleep(WHILE)
        winner, loser = await parted(first, second)
        assert_untouched(await loser.plan(), winner.name)
        assert phases_of(await winner.plan())[:1] == ["Initializing"]
        assert objects.finalizers(await winner.plan()) == [FINALIZER]
        assert len(await loser.events("ConcurrentUpgradeBlocked")) == 1
        assert len(set(first.ledger.created)) == len(first.ledger.created)
        await loser.simulation.client().delete(UPGRADE_PLANS, loser.name)
        async with first.life(seed="third"):
            assert await loser.until("deleted") == "deleted"
            await asyncio.sleep(WHILE)
            assert await winner.phase() not in {"", "deleted"}


@pytest.mark.rule("pipeline: of two plans created simultaneously exactly one runs")
@pytest.mark.parametrize("restarts", [False, True], ids=["the same process", "a successor"])
async def test_late_acceptance_starts_no_second_plan(*, restarts: bool) -> None:
    async with Simulation(actors=False) as simulation:
        first, second = [await UpgradeRun.set_up(simulation, name=name) for name in ("first", "second")]
        late = LateAcceptance(second.ledger, second.name)
        second.ledger = Ledger(late)

        async def has_timed_out() -> bool:
            return bool(late.late)

        await second.create_plan()
        async with second.life():
            await eventually(has_timed_out)
            arrival = simulation.middleware.hook = Arrival(late, first.name)
            await first.create_plan()
            if not restarts:
                # Its own late writes, too, keep this process from a start of the other plan.
                await asyncio.sleep(WHILE)
                assert await first.phase() == ""
        async with first.life(seed="successor"):
            await first.until_decided()
            await second.until_decided()
            await asyncio.sleep(WHILE)
        assert arrival.statuses == [409]
        winner, loser = await parted(first, second)
        assert (phases_of(await winner.plan()), phases_of(await loser.plan())) == (["Initializing"], [])


async def test_refused_start_of_one_plan_lets_the_other_run() -> None:
    async with Simulation(actors=False) as simulation:
        first, second = await two(simulation)
        first.ledger = Ledger(Refusing(first.ledger, first.name))
        await second.create_plan()
        async with first.life():
            await second.until("Initializing")


@pytest.mark.full
@pytest.mark.rule("pipeline: a queued plan and its deletion change nothing")
@pytest.mark.servers
async def test_queued_plan_and_its_deletion_change_nothing(simulate: Simulate) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        queued = replace(stage, name="queued")
        async with stage.life() as life:
            await stage.create_plan()
            await stage.until("ISODownloading")
            await queued.create_plan()
            await queued.until_decided()
            assert condition(await queued.plan(), "Available")[:2] == ("False", "ConcurrentUpgradeBlocked")
            await stage.client.delete(UPGRADE_PLANS, "queued")
            assert await queued.until("deleted") == "deleted"
            # Deletions select by label, which no path shows; those of the other plan come at its end.
            assert [write for write in life.wire.writes if write.startswith("DELETE")] == []
            assert await stage.until_ended() == SUCCEEDED
        about = [write for write in life.wire.writes if "queued" in write]
        assert about == ["PATCH /apis/management.harvesterhci.io/v1beta1/upgradeplans/queued/status"]


@pytest.mark.full
@pytest.mark.rule("pipeline: a new plan runs after the previous one has ended")
@pytest.mark.servers
@pytest.mark.real_full
async def test_deleting_a_succeeded_plan_keeps_the_running_one(simulate: Simulate) -> None:
    async with simulate(scale=0.1) as simulation, started(simulation) as stage:

        async def interval() -> object:
            name, namespace = "replica-replenishment-wait-interval", "longhorn-system"
            return (await stage.client.get(LONGHORN_SETTINGS, name, namespace=namespace))["value"]

        async def is_overridden() -> bool:
            return await interval() != original

        following = replace(stage, name="next")
        assert await stage.until_ended() == SUCCEEDED
        original = await interval()
        await following.create_plan({**BY_VERSION, "force": True})
        await eventually(is_overridden)
        await stage.client.delete(UPGRADE_PLANS, stage.name)
        assert await stage.until("deleted") == "deleted"
        assert await is_overridden()
        assert await following.until_ended() == SUCCEEDED
        assert objects.status(await following.plan())["provisionGeneration"] == 5
        assert stage.ledger.conflicts == []
