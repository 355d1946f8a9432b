"""Upgrades that end otherwise than well, deleted or failed, whatever happens to their manager on the way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hack.simulation import Simulation
from tests.support.leftovers import ours, settings
from tests.support.manager_restarts import UNDISTURBED, Interruption, restarted
from tests.support.upgrade import BY_VERSION, Stage, phases_of
from upgrade_manager.api.phases import FAILED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from tests.support.repairable import RepairableScenario

#: Virtual seconds in which an event is sent again that got no answer.
_EVENT_RETRY = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What an upgrade has left."""

    phases: list[str]
    ours: list[str]
    settings: list[Any]
    notes: dict[str, str]
    #: But for errors on the way.
    events: list[tuple[str, str, int]]
    errors: list[str] = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One upgrade up to such an end."""

    left: Left
    #: Writes of the first life before the deletion; 0 without one.
    before: int
    #: All of them.
    writes: list[str]
    #: What was to be put back.
    settings: list[Any]


async def run(scenario: RepairableScenario, *, delete_in: str = "", interruption: Interruption = UNDISTURBED) -> Run:
    """An upgrade that is deleted as soon as it has reached a phase, or that fails."""
    async with Simulation(scenario, scale=0) as simulation:
        was = await settings(simulation)
        stage = await Stage.set_up(simulation)
        async with restarted(stage, [interruption]) as managers:
            await stage.create_plan(BY_VERSION)
            before = 0
            if delete_in:
                await stage.until_recorded(delete_in)
                before = len(managers.lives[0].wire.writes)
                await simulation.client().delete(UPGRADE_PLANS, stage.name)
            await stage.until("gone" if delete_in else FAILED)
            await stage.settle()
            if interruption != UNDISTURBED:
                await asyncio.sleep(_EVENT_RETRY)
        writes = managers.lives[0].wire.writes
        return Run(left=await _left(stage), before=before, writes=writes, settings=was)


async def _left(stage: Stage) -> Left:
    """Look at it."""
    found = [(event["reason"], event["message"], event["count"]) for event in await stage.events()]
    try:
        plan = await stage.plan()
    except NotFound:
        plan = {"metadata": {}}
    return Left(
        phases=phases_of(plan),
        ours=await ours(stage.simulation),
        settings=await settings(stage.simulation),
        notes=objects.annotations_of(plan),
        events=sorted(event for event in found if event[0] != "ReconcileError"),
        errors=[message for reason, message, _ in found if reason == "ReconcileError"],
    )
