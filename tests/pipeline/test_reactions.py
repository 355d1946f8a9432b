"""A phase acts upon a change as soon as the change is seen: no phase begins a while later."""

from __future__ import annotations

from random import Random

import pytest

from hack import virtual_time
from hack.bench.in_process import MANAGER, manager, record, run_plan
from hack.bench.phase_changes import AWAITED, phase_changes
from hack.faults.forwarding import SlowTransport
from hack.simulation import Simulation
from tests.support.managers.healthy_run import healthy_run
from upgrade_manager.api.phases import PhaseName

#: Seconds, in virtual time, where only waiting and the way to the API server count.
AT_ONCE = 0.05
#: One for each phase that waits for one object, and five for each of the three nodes.
ENOUGH = 15
#: Seconds for a request there and back, and how many of them, one after the other, a change of phase may take.
WIRE, REQUESTS = 0.01, 3


@pytest.mark.rule("pipeline: a phase proceeds as soon as its condition holds")
def test_awaited_change_is_handled_at_once() -> None:
    found = healthy_run().reactions
    assert len(found) > ENOUGH
    assert max(found) <= AT_ONCE


async def _phase_changes(*, wire: float, scale: float) -> dict[PhaseName, float]:
    async with Simulation("three-nodes", scale=scale) as simulation:
        recorder = record(simulation)
        transport = SlowTransport(simulation.transport(), random=Random(0), least=wire, most=wire)
        async with manager(simulation, transport):
            await run_plan(simulation)
    return phase_changes(recorder.exchanges, manager=MANAGER)


@pytest.mark.full
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.0])
@pytest.mark.thin
def test_phase_change_takes_its_own_requests_only(scale: float) -> None:
    changes = virtual_time.run(_phase_changes(wire=WIRE, scale=scale))
    assert changes.keys() == AWAITED.keys()
    assert {phase: seconds for phase, seconds in changes.items() if seconds > REQUESTS * WIRE} == {}
