"""The manager is killed after every write of an attempt that goes on after a failure, or loses its response."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_crash_sweep_ends import mishaps
from tests.support.cluster.cluster_state import created_objects, overridden_settings
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.announcements import steps
from tests.support.managers.manager_restarts import UNDISTURBED, Interruption, restarted
from tests.support.managers.sweep import Sweep, cases
from tests.support.managers.upgrade import UpgradeRun, node_states, phases_of
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.phases import PHASE_VALUES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES

#: Virtual seconds after which an event without a response is sent again.
_EVENT_RETRY = 15.0
#: By what fails in the first attempt: the scenario's name and its faults.
FAILING: dict[str, tuple[str, dict[str, Any]]] = {
    "a node's images": ("three-nodes", fault("prepare", SECOND)),
    "the cluster's components": ("three-nodes", fault("manifests")),
    "a node's pre-drain": ("three-nodes", fault("pre-drain", SECOND)),
    "a node's post-drain": ("three-nodes", fault("post-drain", SECOND)),
    "the only node": ("one-node", fault("single-node-upgrade")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A plan that has succeeded in its second attempt; equal to others with the same end."""

    phases: list[str]
    states: dict[str, str]
    created: list[str]
    #: Jobs and Plans of the second attempt, each once.
    jobs: Counter[str]
    settings: list[Any]
    annotations: dict[str, str]
    events: Counter[str]
    ledger: list[Any]
    errors: list[str] = field(compare=False)
    writes: int = field(compare=False)
    originals: list[Any] = field(compare=False)


async def run(what: str, *, interruption: Interruption = UNDISTURBED) -> Run:
    """Run an upgrade that fails, is mended and goes on, and whose second attempt is interrupted."""
    name, faults = FAILING[what]
    scenario = RepairableScenario.of(name, **faults)
    async with Simulation(scenario, scale=0) as simulation:
        originals = await overridden_settings(simulation)
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
        before = len(stage.ledger.created)
        scenario.repair()
        # Times have seconds.
        await asyncio.sleep(60)
        await stage.patch(spec={"attempt": 2})
        async with restarted(stage, [interruption]) as managers:
            await stage.until(SUCCEEDED)
            await stage.settle()
            if interruption != UNDISTURBED:
                await asyncio.sleep(_EVENT_RETRY)
        events = await stage.events()
        errors = [event for event in events if event["reason"] == "ReconcileError"]
        plan = await stage.plan()
        made = stage.ledger.created[before:]
        return Run(
            phases=phases_of(plan),
            states=node_states(plan),
            created=await created_objects(simulation),
            jobs=Counter(name for path, name in made if path.endswith(("/jobs", "/plans"))),
            settings=await overridden_settings(simulation),
            annotations=objects.annotations_of(plan),
            events=steps(event for event in events if event not in errors),
            ledger=plan["status"].get("ledger") or [],
            errors=[event["message"] for event in errors],
            writes=len(managers.lives[0].wire.writes),
            originals=originals,
        )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", cases(FAILING, default=["a node's pre-drain", "the only node"]))
async def test_successor_finishes_an_attempt(what: str, sweep: Sweep) -> None:
    golden = await run(what)
    assert (golden.errors, golden.created, golden.ledger) == ([], [], [])
    assert golden.settings == golden.originals
    assert golden.phases == [*PHASE_VALUES, SUCCEEDED]
    assert max(golden.jobs.values()) == 1
    for happens, interruption in mishaps(1, golden.writes, beginning=list(FAILING).index(what), sweep=sweep):
        ending = await run(what, interruption=interruption)
        assert (ending.events - golden.events, golden.events - ending.events) == (Counter(), Counter()), happens
        assert ending == golden, happens


async def refuse(*, interruption: Interruption = UNDISTURBED) -> tuple[Any, ...]:
    """Request an attempt without the image that it needs; return the end, and the number of writes."""
    name, faults = FAILING["a node's pre-drain"]
    scenario = RepairableScenario.of(name, **faults)
    async with Simulation(scenario, scale=0) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
        await stage.client.delete(VIRTUAL_MACHINE_IMAGES, "upgrade-iso", namespace=HARVESTER_SYSTEM)
        # Times have seconds.
        await asyncio.sleep(60)
        await stage.patch(spec={"attempt": 2})
        async with restarted(stage, [interruption]) as managers:
            await stage.until_plan(lambda plan: plan["status"].get("attempt") == 2)
            await stage.settle()
            await asyncio.sleep(_EVENT_RETRY)
        plan = await stage.plan()
        failures = [(event["message"], event["count"]) for event in await stage.events("UpgradeFailed")]
        end = phases_of(plan), node_states(plan), objects.finalizers(plan), failures, await created_objects(simulation)
        return *end, [one.get("cause") for one in plan["status"]["attempts"]], len(managers.lives[0].wire.writes)


@pytest.mark.full
async def test_successor_refuses_an_attempt() -> None:
    *golden, writes = await refuse()
    assert len(golden[3]) == 2
    assert golden[2] == []
    for number in range(1, writes + 1):
        for interruption in (Interruption(die_at=number, after=True), Interruption(lose_at=number)):
            *ending, _ = await refuse(interruption=interruption)
            assert ending == golden, interruption
