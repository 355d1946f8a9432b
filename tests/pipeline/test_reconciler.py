"""Reconciles of a plan through errors, concurrent writes, deletions and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from unittest.mock import AsyncMock

import pytest
from structlog.testing import capture_logs

from hack.apiserver.call import Call
from hack.faults.middleware import NoHook
from hack.faults.rules import Cut, LoseRequest, Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.simulate import Simulate
from tests.support.managers.exactly_once import CreateCounter, assert_succeeds_once
from tests.support.managers.phase_results import WAITS
from tests.support.managers.upgrade import UpgradeRun, condition, phases_of, started
from upgrade_manager.api.phases import FAILED, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, PreconditionFailed
from upgrade_manager.kube.resources import EVENTS, UPGRADE_PLANS
from upgrade_manager.kube.transport import Response
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.errors import LOGS, RetryError
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.phases.initialize import Initialize
from upgrade_manager.pipeline.status_throttle import DETAIL_INTERVAL, MESSAGE_INTERVAL

#: Virtual seconds in which a manager records what it has to.
WHILE = 30.0


class Meanwhile(NoHook):
    """Calls an action right before the first write of a plan."""

    def __init__(self, action: Callable[[], Awaitable[object]], *, subresource: str) -> None:
        self._action = action
        self._subresource = subresource
        self._done = False

    async def before(self, number: int, call: Call) -> None:
        _ = number
        if not self._done and call.resource.startswith("upgradeplans") and call.subresource == self._subresource:
            self._done = True
            await self._action()


async def test_unknown_phase_is_kept_and_reported() -> None:
    async with Simulation(actors=False) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        plan = await stage.create_plan()
        status = {"currentPhase": "Polishing", "conditions": [], "shine": {"level": 3}}
        await stage.client.update(UPGRADE_PLANS, {**plan, "status": status}, subresource="status")
        async with stage.life():
            await asyncio.sleep(WHILE)
            plan = await stage.plan()
    message = "unknown phase Polishing; run the manager version that recorded it"
    assert condition(plan, "Degraded") == ("True", "ReconcileError", message)
    assert objects.status(plan)["currentPhase"] == "Polishing"


@pytest.mark.rule(
    "api: a condition's observedGeneration is the generation it was computed from",
    "api: kubectl wait for Progressing=False works",
)
async def test_ended_plan_observes_new_generations() -> None:
    """`kubectl wait` ignores conditions of an older generation."""
    days = {"management.harvesterhci.io/min-certs-expiration-in-day": "0"}
    async with Simulation(actors=False) as simulation, started(simulation, annotations=days) as stage:
        assert await stage.until_ended() == FAILED
        await stage.patch(spec={"force": True})
        await asyncio.sleep(WHILE)
        plan = await stage.plan()
    assert objects.metadata(plan)["generation"] == 2
    assert {one["observedGeneration"] for one in objects.status(plan)["conditions"]} == {2}


@pytest.mark.rule("pipeline: a 409 that is not the manager's own precondition is reported")
@pytest.mark.parametrize(
    ("error", "warnings"),
    [
        pytest.param(Conflict("a webhook refuses"), [("ReconcileError", "a webhook refuses")], id="a webhook's"),
        pytest.param(PreconditionFailed("changed"), [], id="a precondition's"),
    ],
)
async def test_single_conflict_is_reported_unless_expected(
    monkeypatch: pytest.MonkeyPatch, error: Conflict, warnings: list[tuple[str, str]]
) -> None:
    async with Simulation() as simulation:
        monkeypatch.setattr(
            Initialize, "run", AsyncMock(side_effect=[error, *[Waiting(waits=WAITS, message="ready")] * 99])
        )
        async with started(simulation) as stage:
            await stage.until_plan(lambda plan: condition(plan, "Progressing")[2] == "ready")
            assert await stage.warnings() == warnings


@pytest.mark.full
@pytest.mark.rule("api: Degraded becomes False when the error is resolved")
async def test_internal_error_is_reported_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Simulation() as simulation:
        with monkeypatch.context() as patched:
            patched.setattr(Initialize, "run", AsyncMock(side_effect=ValueError("Traceback: /usr/lib/secret")))
            async with started(simulation) as stage:
                await asyncio.sleep(WHILE)
        message = f"internal error (ValueError), retrying. {LOGS}"
        assert condition(await stage.plan(), "Degraded") == ("True", "ReconcileError", message)
        assert await stage.warnings() == [("ReconcileError", message)]
        async with stage.life(seed="repaired"):
            assert await stage.until_ended() == SUCCEEDED
        assert condition(await stage.plan(), "Degraded") == ("False", "ReconcileSuccess", "")


@pytest.mark.servers
@pytest.mark.parametrize("orderly", [True, False], ids=["is stopped", "is killed"])
async def test_lasting_error_is_one_event_when_the_manager(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch, *, orderly: bool
) -> None:
    """Volatile numbers in the message do not make it another event."""
    tried: list[float] = []

    async def silent(_self: Initialize, _ctx: ReconcileContext) -> None:
        tried.append(asyncio.get_running_loop().time())
        raise RetryError(f"10.0.0.1:{40000 + len(tried)}: no response within {len(tried)}.5 s")

    monkeypatch.setattr(Initialize, "run", silent)
    counts: list[int] = []
    async with simulate(actors=False) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        await stage.create_plan()
        for seed in ("first", "second", "third"):
            already = len(tried)
            async with stage.life(seed=seed) as life:
                async with asyncio.timeout(WHILE):
                    while len(tried) < already + 3:  # noqa: ASYNC110  # polled
                        await asyncio.sleep(0.02)
                if not orderly:
                    await asyncio.sleep(0.5)
                    await life.kill()
            (event,) = await stage.events("ReconcileError")
            counts.append(event["count"])
        events = await stage.events()
    if orderly:
        assert counts[-1] == len(tried)
    assert 2 <= counts[0] < counts[1] < counts[2] <= len(tried)
    assert event["message"].startswith("10.0.0.1:4")
    assert event["firstTimestamp"] <= event["lastTimestamp"]
    others = {one["reason"]: one["count"] for one in events if one["reason"] != "ReconcileError"}
    assert others == {"PhaseTransition": 1, "ToolkitImageChosen": 1}


@pytest.mark.parametrize(
    "way", ["before", "after", "lost"], ids=["dies before a write", "dies after a write", "loses a response"]
)
@pytest.mark.thin
@pytest.mark.full
async def test_lasting_error_stays_one_event_when_a_manager(way: str) -> None:
    for number in range(1, 8):
        async with Simulation(actors=False) as simulation:
            stage = await UpgradeRun.set_up(simulation)
            await stage.create_plan({"version": "v9.9.9"})
            lose_at, die_at = (number, 0) if way == "lost" else (0, number)
            async with stage.life(die_at=die_at, after=way == "after", lose_at=lose_at) as life, asyncio.timeout(600):
                while len(life.wire.writes) <= number and not life.wire.died.is_set():  # noqa: ASYNC110  # from outside
                    await asyncio.sleep(0.1)
            async with stage.life(seed="successor"):
                await asyncio.sleep(WHILE)
            events = await stage.events("ReconcileError")
        # A lost response is another error.
        counts = [event["count"] for event in events if event["message"].startswith("Version harvester-system/v9.9.9")]
        assert len(counts) == 1, number
        assert counts[0] > 1, number


@pytest.mark.parametrize("forced", [False, True], ids=["cleaned up", "without its finalizer"])
async def test_deleting_a_failing_plan_is_not_a_recovery(*, forced: bool) -> None:
    async with Simulation(actors=False) as simulation:
        with capture_logs() as lines:
            async with started(simulation, {"version": "v9.9.9"}) as stage:
                await stage.until_plan(lambda plan: objects.condition(plan, "Degraded").get("status") == "True")
                if forced:
                    await stage.patch(metadata={"finalizers": None})
                await stage.client.delete(UPGRADE_PLANS, stage.name)
                assert await stage.until("deleted") == "deleted"
                await asyncio.sleep(WHILE)
    events = [line["event"] for line in lines]
    assert "reconcile failed" in events
    assert "reconcile recovered" not in events


async def test_error_is_recorded_when_status_writes_succeed_again() -> None:
    refusal = Rule(
        match=Match(verbs=("patch",), resource="upgradeplans.*", subresource="status", nth=2),
        action=Refuse(status=500, reason="InternalError"),
    )
    async with Simulation(actors=False) as simulation:
        simulation.middleware.add(refusal)
        async with started(simulation, {"version": "v9.9.9"}) as stage:
            await asyncio.sleep(WHILE)
            before = await stage.plan()
            simulation.middleware.remove(refusal)
            await asyncio.sleep(WHILE)
            after = await stage.plan()
    assert condition(before, "Degraded") == ("False", "ReconcileSuccess", "")
    status, reason, message = condition(after, "Degraded")
    assert (status, reason) == ("True", "ReconcileError")
    assert message.startswith("Version harvester-system/v9.9.9 does not exist")


@pytest.mark.parametrize(
    ("waits", "spacing"),
    [
        pytest.param(
            lambda text: Waiting(waits=WAITS, message="waiting for a Job", detail=text), DETAIL_INTERVAL, id="a detail"
        ),
        pytest.param(
            lambda text: Waiting(waits=WAITS, message=f"waiting for {text}"), MESSAGE_INTERVAL, id="a message"
        ),
    ],
)
async def test_informational_writes_are_throttled(
    monkeypatch: pytest.MonkeyPatch, waits: Callable[[str], Waiting], spacing: float
) -> None:
    """Reconciled ten times a second, with another message each time."""
    runs = 0

    async def changing(_self: Initialize, _ctx: ReconcileContext) -> Waiting:
        nonlocal runs
        runs += 1
        return replace(waits(f"step {runs}"), after=0.1)

    monkeypatch.setattr(Initialize, "run", changing)
    async with Simulation(actors=False) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life() as life:
            await stage.create_plan()
            await stage.until("Initializing")
            await asyncio.sleep(spacing)
            before = len(life.wire.writes)
            await asyncio.sleep(WHILE)
            written = [write for write in life.wire.writes[before:] if write.endswith("/status")]
            message = condition(await stage.plan(), "Progressing")[2]
    assert len(written) == pytest.approx(WHILE / spacing, rel=0.2)
    assert runs - int(message.rpartition(" ")[2]) <= spacing / 0.1 + 2


@pytest.mark.servers
@pytest.mark.parametrize("subresource", ["", "status"], ids=["before the finalizer", "before the first record"])
async def test_plan_deleted_meanwhile_does_not_block_the_next(simulate: Simulate, subresource: str) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)

        async def vanish() -> None:
            await stage.client.delete(UPGRADE_PLANS, stage.name)
            if subresource:
                await stage.patch(metadata={"finalizers": None})

        simulation.middleware.hook = Meanwhile(vanish, subresource=subresource)
        following = replace(stage, name="next")
        async with stage.life():
            await stage.create_plan()
            assert await stage.until("deleted") == "deleted"
            await following.create_plan()
            assert await following.until("Initialized", "ISODownloading")


@pytest.mark.rule("pipeline: a concurrent change is never overwritten")
@pytest.mark.servers
@pytest.mark.parametrize("subresource", ["", "status"], ids=["of the finalizer", "of the status"])
async def test_conflict_is_retried_and_is_not_an_error(simulate: Simulate, subresource: str) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)

        async def overtake() -> None:
            await stage.patch(metadata={"annotations": {"note": "from a user"}})

        simulation.middleware.hook = Meanwhile(overtake, subresource=subresource)
        async with stage.life():
            await stage.create_plan()
            await stage.until("ISODownloading")
            plan = await stage.plan()
        assert await stage.warnings() == []
    assert stage.ledger.conflicts
    assert objects.annotations_of(plan)["note"] == "from a user"
    assert condition(plan, "Degraded") == ("False", "ReconcileSuccess", "")


class Blinding(CreateCounter):
    """Hides the plan from the manager as soon as it cleans up."""

    BLIND = 60.0

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._middleware = simulation.middleware
        self._rule = Rule(match=Match(verbs=("list", "watch"), resource="upgradeplans.*"), action=LoseRequest())
        self._done = False

    async def after(self, number: int, call: Call, response: Response) -> None:
        """Start to hide it in that phase."""
        await super().after(number, call, response)
        if not self._done and call.subresource == "status" and b'"CleaningUp"' in response.body:
            self._done = True
            self._middleware.add(self._rule)
            asyncio.get_running_loop().call_later(self.BLIND, self._middleware.remove, self._rule)


@pytest.mark.full
async def test_stale_cache_repeats_no_write() -> None:
    async with Simulation("three-nodes") as simulation:
        blinding = simulation.middleware.hook = Blinding(simulation)
        # An open watch would outlast it otherwise.
        cut = Rule(match=Match(verbs=("watch",), resource="upgradeplans.*"), action=Cut(seconds=0.5, clean=False))
        simulation.middleware.add(cut)
        async with started(simulation) as stage:
            await assert_succeeds_once(stage, blinding)


@pytest.mark.full
async def test_stopping_during_a_reconcile_is_not_an_error() -> None:
    async with Simulation() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stopped = asyncio.Event()

        async def hang() -> None:
            stopped.set()
            await asyncio.sleep(3600)

        simulation.middleware.hook = Meanwhile(hang, subresource="status")
        async with stage.life():
            await stage.create_plan()
            await stopped.wait()
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < WHILE
        async with stage.life(seed="successor"):
            assert await stage.until_ended() == SUCCEEDED
        assert await stage.warnings() == []


@pytest.mark.parametrize(("away", "repeated"), [(1.0, True), (5400.0, False)], ids=["a moment", "90 minutes"])
@pytest.mark.full
async def test_events_of_recent_phases_are_replayed_on_start(away: float, *, repeated: bool) -> None:
    async with Simulation() as simulation:
        async with started(simulation, {"version": "v9.9.9"}) as stage:
            await asyncio.sleep(1)
        for event in (await stage.client.list(EVENTS)).items:
            await stage.client.delete(EVENTS, objects.name(event), namespace=objects.namespace(event))
        await asyncio.sleep(away)
        async with stage.life(seed="successor"):
            await asyncio.sleep(1)
        assert phases_of(await stage.plan()) == ["Initializing"]
        reasons = [event["reason"] for event in await stage.events() if event["type"] == "Normal"]
    assert reasons == (["PhaseTransition", "ToolkitImageChosen"] if repeated else [])
