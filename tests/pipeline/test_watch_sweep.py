"""Events of an upgrade's watches come late, get lost until the next list, or come twice: the end is the same.

A golden run counts the events. Then, for each of them, a new cluster with the same seed in which that event has its
mishap.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any, get_args

import pytest

from hack.simulation import Simulation
from tests.support.cluster.cluster_state import end_state
from tests.support.managers.announcements import steps
from tests.support.managers.sweep import Sweep, cases, shares
from tests.support.managers.upgrade import SPECS, Ledger, UpgradeRun
from tests.support.server.skewed import UNTIL_RELIST, Mishap, Skewed
from upgrade_manager.kube import objects

MISHAPS: tuple[Mishap, ...] = get_args(Mishap)
#: The events are dealt out to so many tests, which may run at the same time.
SHARES = 2
#: The distance between two events: there are far more of them than of writes.
STRIDE = 10
#: The distance between two events of the default tier, in strides.
THIN = 24


async def upgrade(spec: dict[str, Any], *, event: int = 0, mishap: Mishap = "late") -> tuple[dict[str, Any], int]:
    """Return how an upgrade ends, and how many events there were."""
    async with Simulation("three-nodes", scale=0.2) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        skewed = Skewed(stage.ledger, event=event, mishap=mishap)
        stage = replace(stage, ledger=Ledger(skewed))
        async with stage.life():
            await stage.create_plan(spec)
            plan = await stage.succeed()
            await asyncio.sleep(2 * UNTIL_RELIST)
        ending = {
            "generation": objects.status(plan)["provisionGeneration"],
            "state": await end_state(simulation),
            "created": Counter(made for made in stage.ledger.created if not made[0].endswith("/events")),
            "announced": steps(await stage.events()),
        }
        return ending, skewed.events


@pytest.mark.rule("pipeline: decisions derive from the plan and observed objects, not from events seen earlier")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", shares(SHARES))
@pytest.mark.parametrize("mishap", cases(MISHAPS, default=["lost"]))
@pytest.mark.parametrize("spec", SPECS)
async def test_late_lost_or_duplicate_watch_event_changes_nothing(
    spec: dict[str, Any], mishap: Mishap, share: int, sweep: Sweep
) -> None:
    golden, events = await upgrade(spec)
    assert events > 100
    first = 1 + MISHAPS.index(mishap)
    for event in sweep.points(first, events, share=share, shares=SHARES, stride=STRIDE, thin=THIN):
        ending, _ = await upgrade(spec, event=event, mishap=mishap)
        assert ending == golden, f"event {event} of {events} is {mishap}"
