"""Holders that appear after the start: the upgrade waits before the components and before each node."""

from __future__ import annotations

import asyncio

import pytest

from hack.simulation import Simulation
from tests.support.cluster.holdings import HOLDINGS, Holding
from tests.support.managers.upgrade import condition, node_states, started
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.pipeline.holders import ROWS, Place

APPEARING = {name: HOLDINGS[name] for name in ("a built-in upgrade", "a node that joins", "an addon that is updated")}
#: Seconds after which a holder is a blocker; an addon's operation takes minutes.
OVERDUE = {"Addon": 120.0}


def overdue(holding: Holding) -> float:
    return OVERDUE.get(holding.resource.kind, 0.0) + 30.0


def blocked_by(plan: Object, name: str) -> bool:
    found = objects.status(plan).get("blockers") or []
    return [(one["reason"], one["name"]) for one in found] == [("HolderActive", name)]


@pytest.mark.rule("blockers: work of others holds the next step back, by name, and its end lets it go on")
@pytest.mark.parametrize("holding", APPEARING.values(), ids=APPEARING)
@pytest.mark.parametrize(
    ("reached", "held"), [("ImagePreloading", "ImagePreloaded"), ("ClusterUpgrading", "ClusterUpgraded")]
)
@pytest.mark.thin
@pytest.mark.full
async def test_holder_holds_a_step_back(holding: Holding, reached: str, held: str) -> None:
    async with Simulation("three-nodes") as simulation, started(simulation) as stage:
        await stage.until(reached)
        await holding.hang(simulation)
        await stage.until(held)
        await asyncio.sleep(OVERDUE.get(holding.resource.kind, 0.0) / 2)
        early = blocked_by(await stage.plan(), holding.name)
        await asyncio.sleep(overdue(holding))
        plan = await stage.plan()
        assert not (early and holding.resource.kind in OVERDUE)
        assert (await stage.phase(), blocked_by(plan, holding.name)) == (held, True)
        assert holding.message in condition(plan, "Progressing")[2]
        assert condition(plan, "Degraded")[0] == "False"
        await holding.finish(simulation)
        plan = await stage.succeed()
        assert "blockers" not in objects.status(plan)


def test_each_row_of_the_gate_has_a_holder_that_appears() -> None:
    asked = {row.seen.resource for row in ROWS if Place.GATE in row.asked}
    assert {holding.resource for holding in APPEARING.values()} == asked


@pytest.mark.full
@pytest.mark.rule("blockers: work of others holds the next step back, by name, and its end lets it go on")
@pytest.mark.parametrize("holding", APPEARING.values(), ids=APPEARING)
@pytest.mark.thin
async def test_holder_holds_the_next_node_back(holding: Holding) -> None:
    async with Simulation("three-nodes") as simulation, started(simulation) as stage:
        await stage.until_node("PostDraining")
        await holding.hang(simulation)
        plan = await stage.until_plan(lambda plan: blocked_by(plan, holding.name), seconds=3600)
        states = node_states(plan)
        assert max(states.values()) == "PostDrained"
        await asyncio.sleep(overdue(holding))
        assert node_states(await stage.plan()) == states
        await holding.finish(simulation)
        assert await stage.until_ended() == SUCCEEDED
