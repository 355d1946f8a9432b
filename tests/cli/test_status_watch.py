"""A watch of a plan on the embedded API server, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

import pytest

from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.managers.displayed import MANIFEST
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE
from upgrade_manager.cli.lease_watch import EVERY, LeaseWatch
from upgrade_manager.cli.status_watch import PlanWatch
from upgrade_manager.display.expectation import UNKNOWN_PACE
from upgrade_manager.display.model import View
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS, LEASES, UPGRADE_PLANS
from upgrade_manager.runtime.lease import held_lease, new_lease

#: Seconds in which a change is seen, and in which an idle watch is observed.
SOON, LONG = 3.0, 200.0


@dataclass
class Recorder:
    """A screen that records what it is given."""

    redraws: bool = False
    views: list[View] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show_message(self, text: str) -> None:
        raise NotImplementedError

    def notify(self, notice: str) -> None:
        self.notices.append(notice)

    def show(self, view: View) -> None:
        self.views.append(view)

    @property
    def phases(self) -> list[str]:
        return [view.phase for view in self.views]


@dataclass
class Watched:
    """A plan that is being watched."""

    simulation: Simulation
    screen: Recorder
    plan: Object
    task: asyncio.Task[bool]

    async def set(self, **status: Any) -> None:
        """Set fields of the plan's status, and wait until the watch has seen it."""
        await self.simulation.client().patch(
            UPGRADE_PLANS, "demo", MergePatch({"status": status}), subresource="status"
        )
        await asyncio.sleep(SOON)

    async def record(self, reason: str) -> None:
        """Record an event of the plan."""
        about = {"kind": "UpgradePlan", "name": "demo", "uid": self.plan["metadata"]["uid"]}
        named = {"name": f"demo.{reason.lower()}", "namespace": "default"}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": named, "involvedObject": about}
        event |= {"type": "Warning", "reason": reason, "message": "x"}
        await self.simulation.client().create(EVENTS, event)
        await asyncio.sleep(SOON)


@asynccontextmanager
async def watched(*rules: Rule, redraws: bool = False) -> AsyncIterator[Watched]:
    """Watch a new plan, which has no status."""
    async with Simulation(actors=False) as simulation, asyncio.TaskGroup() as group:
        for rule in rules:
            simulation.middleware.add(rule)
        plan = await simulation.apply(MANIFEST)
        client = Client(simulation.transport(), user_agent="status", random=Random(0))
        lease = LeaseWatch(client, now=simulation.now)
        await lease.read()
        watch = PlanWatch(client, plan, [], pace=UNKNOWN_PACE, lease=lease, now=simulation.now, random=Random(0))
        screen = Recorder(redraws=redraws)
        task = group.create_task(watch.follow(screen))
        await asyncio.sleep(SOON)
        yield Watched(simulation=simulation, screen=screen, plan=plan, task=task)
        task.cancel()


@pytest.mark.rule("status: a watch ends with its plan, or with status 1 when that is deleted")
async def test_changes_are_shown_until_the_plan_has_ended() -> None:
    async with watched() as plan:
        await plan.set(currentPhase="Initializing")
        await plan.record("ReconcileError")
        await plan.set(currentPhase="Failed", cleanupPending=True)
        await asyncio.sleep(LONG)
        assert not plan.task.done()
        await plan.set(cleanupPending=None)
        assert plan.task.result() is True
        shown = [(view.phase, len(view.warnings)) for view in plan.screen.views]
        assert list(dict.fromkeys(shown)) == [("", 0), ("Initializing", 0), ("Initializing", 1), ("Failed", 1)]
        assert plan.screen.notices == []


@pytest.mark.rule("status: changes are shown as they happen, without polling")
@pytest.mark.parametrize(("redraws", "views"), [(False, 0), (True, LONG)])
async def test_idle_watch_sends_no_request_and_redraws(*, redraws: bool, views: int) -> None:
    async with watched(redraws=redraws) as plan:
        await plan.set(currentPhase="Initializing")
        counts = plan.simulation.middleware.counts
        assert counts.total(user_agent="status") > 0
        counts.clear()
        plan.screen.views.clear()
        await asyncio.sleep(LONG)
        # A leader that stops sends nothing.
        reads = counts.total(user_agent="status", resource=LEASES.name)
        assert counts.total(user_agent="status") == reads <= LONG / EVERY
        times = {view.now for view in plan.screen.views}
        assert len(times) == len(plan.screen.views) == pytest.approx(views, rel=0.01)


@pytest.mark.rule("status: a lost connection is shown and retried")
async def test_lost_connection_is_shown_and_retried() -> None:
    async with watched() as plan:
        await plan.simulation.backend.stop_api_server()
        await asyncio.sleep(LONG)
        (notice,) = plan.screen.notices
        assert notice.startswith("Connection to the API server lost at 00:00:")
        assert "retrying" in notice
        await plan.simulation.backend.start_api_server()
        await plan.set(currentPhase="Initializing")
        await asyncio.sleep(LONG)
        assert plan.screen.notices == [notice, ""]
        assert plan.screen.phases[-1] == "Initializing"


@pytest.mark.rule("status: a plan without a leader is said first, and a plan that has ended needs none")
async def test_leader_that_stops_is_shown_without_a_change_of_the_plan() -> None:
    async with watched() as plan:
        simulation, screen = plan.simulation, plan.screen
        held = new_lease(LEASE, namespace=HARVESTER_SYSTEM, identity="pod-a_1", now=simulation.now())
        held = await simulation.client().create(LEASES, held)
        await asyncio.sleep(LONG)
        assert screen.views[-1].leader.is_missing
        await simulation.client().update(LEASES, held_lease(held, identity="pod-b_1", now=simulation.now()))
        await asyncio.sleep(2 * EVERY)
        assert not screen.views[-1].leader.is_missing
        states = [(view.leader.state, view.leader.holder) for view in screen.views]
        expected = [("Unknown", ""), ("Leading", "pod-a"), ("None", "pod-a"), ("Leading", "pod-b")]
        assert list(dict.fromkeys(states)) == expected
        # The last reading stays while the API server is away, which a notice says.
        await simulation.backend.stop_api_server()
        await asyncio.sleep(LONG)
        assert not screen.views[-1].leader.is_missing
        await simulation.backend.start_api_server()


async def test_deletion_ends_the_watch() -> None:
    async with watched() as plan:
        await plan.simulation.client().delete(UPGRADE_PLANS, "demo")
        await asyncio.sleep(SOON)
        assert plan.task.result() is False


async def test_plan_of_the_same_name_is_another_one() -> None:
    async with watched() as plan:
        await plan.simulation.backend.stop_api_server()
        direct = Client(plan.simulation.server, user_agent="test", random=Random(0))
        await direct.delete(UPGRADE_PLANS, "demo")
        await direct.create(UPGRADE_PLANS, MANIFEST)
        await plan.simulation.backend.start_api_server()
        await asyncio.sleep(LONG)
        assert plan.task.result() is False


async def test_watch_without_access_to_events_shows_the_plan() -> None:
    refused = Rule(match=Match(resource="events"), action=Refuse(status=403, reason="Forbidden"))
    async with watched(refused) as plan:
        await plan.set(currentPhase="Initializing")
        assert plan.screen.phases[-1] == "Initializing"
