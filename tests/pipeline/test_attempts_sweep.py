"""The manager is killed after every write of an attempt that goes on after a failure, or loses its response."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_attempts import FULL_DISK, NO_IMPORT
from tests.pipeline.test_crash_sweep_ends import mishaps
from tests.pipeline.test_plan_pauses import DEFAULTS
from tests.pipeline.test_plan_queue import queued
from tests.support.cluster.cluster_state import created_objects, overridden_settings
from tests.support.cluster.holdings import HOLDINGS
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.announcements import steps
from tests.support.managers.done_nodes import spared
from tests.support.managers.manager_restarts import UNDISTURBED, Interruption, restarted
from tests.support.managers.sweep import Goldens, Sweep, cases
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import UpgradeRun, node_states, phases_of
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.phases import PHASE_VALUES, SUCCEEDED
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES

#: Virtual seconds after which an event without a response is sent again.
_EVENT_RETRY = 15.0
#: The ends of the paths of objects that do the work.
_WORK = ("/jobs", "/plans", "/deployments", "/virtualmachineimages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A first attempt that fails, and the user's change of the spec, beside the attempt, that mends it."""

    faults: dict[str, Any]
    scenario: str = "three-nodes"
    mend: dict[str, Any] = field(default_factory=dict)
    options: RunOptions = DEFAULTS


#: By what fails in the first attempt.
FAILING = {
    "a node's images": Failing(faults=fault("prepare", SECOND)),
    "the cluster's components": Failing(faults=fault("manifests")),
    "a node's pre-drain": Failing(faults=fault("pre-drain", SECOND)),
    "a node's post-drain": Failing(faults=fault("post-drain", SECOND)),
    "the only node": Failing(scenario="one-node", faults=fault("single-node-upgrade")),
    "a node's disk": Failing(faults=FULL_DISK),
    "the import of the ISO": Failing(faults=NO_IMPORT),
    "the path of the upgrade": Failing(
        faults={"release": {"metadata": {"minUpgradableVersion": "v1.7.5"}}}, mend={"force": True}
    ),
    "a node's survey": Failing(faults=fault("survey", SECOND), options=OWN),
    "an agent's hold": Failing(faults=fault("agent-hold", SECOND), options=OWN),
    "a chart's hold": Failing(faults=fault("skip-on", SECOND), options=OWN),
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
    #: Objects that the second attempt created before its turn.
    early: list[str]
    errors: list[str] = field(compare=False)
    writes: int = field(compare=False)
    originals: list[Any] = field(compare=False)


#: By what holds the cluster when the second attempt is requested: what has failed.
QUEUED = {
    "a built-in upgrade": "a node's pre-drain",
    "a node that joins": "a node's images",
    "a clean-up": "the only node",
}


async def run(what: str, *, holder: str = "", interruption: Interruption = UNDISTURBED) -> Run:
    """Run an upgrade that fails, is mended and goes on once no holder is left, and interrupt its second attempt."""
    failing = FAILING[what]
    scenario = RepairableScenario.of(failing.scenario, **failing.faults)
    async with Simulation(scenario, scale=0) as simulation:
        originals = await overridden_settings(simulation)
        stage = replace(await UpgradeRun.set_up(simulation), options=failing.options)
        async with stage.life():
            await stage.create_plan()
            await stage.fail()
        before = len(stage.ledger.created)
        scenario.repair()
        await _request(stage, holder, **failing.mend)
        async with spared(stage), restarted(stage, [interruption]) as managers:
            early = await _wait_in_queue(stage, holder, created=before) if holder else []
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
            jobs=Counter(name for path, name in made if path.endswith(_WORK)),
            settings=await overridden_settings(simulation),
            annotations=objects.annotations_of(plan),
            events=steps(event for event in events if event not in errors),
            ledger=plan["status"].get("ledger") or [],
            early=early,
            errors=[event["message"] for event in errors],
            writes=len(managers.lives[0].wire.writes),
            originals=originals,
        )


GOLDEN = Goldens(run)


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", cases(FAILING, default=["a node's pre-drain", "the only node"]))
async def test_successor_finishes_an_attempt(what: str, sweep: Sweep) -> None:
    golden = await GOLDEN.of(what)
    assert (golden.errors, golden.created, golden.ledger) == ([], [], [])
    assert golden.settings == golden.originals
    assert golden.phases == [*PHASE_VALUES, SUCCEEDED]
    assert max(golden.jobs.values()) == 1
    for happens, interruption in mishaps(1, golden.writes, beginning=list(FAILING).index(what), sweep=sweep):
        ending = await run(what, interruption=interruption)
        assert (ending.events - golden.events, golden.events - ending.events) == (Counter(), Counter()), happens
        assert ending == golden, happens


async def _request(stage: UpgradeRun, holder: str, **mend: Any) -> None:
    """Request the next attempt, which the holder holds back."""
    # Times have seconds.
    await asyncio.sleep(60)
    if holder:
        await HOLDINGS[holder].begin(stage.simulation)
    await stage.patch(spec={"attempt": 2, **mend})


async def _wait_in_queue(stage: UpgradeRun, holder: str, *, created: int) -> list[str]:
    """Wait until the attempt is in the queue, then end the holder; return what was created meanwhile."""
    await queued(stage, HOLDINGS[holder].message)
    await asyncio.sleep(60)
    early = [name for path, name in stage.ledger.created[created:] if path.endswith(_WORK)]
    await HOLDINGS[holder].finish(stage.simulation)
    return early


@pytest.mark.full
@pytest.mark.rule("control: an attempt in the queue begins once, after its holder, also when the manager is killed")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("holder", cases(QUEUED, default=["a built-in upgrade"]))
async def test_successor_finishes_an_attempt_of_the_queue(holder: str, sweep: Sweep) -> None:
    what = QUEUED[holder]
    golden, alone = await run(what, holder=holder), await GOLDEN.of(what)
    assert (golden.errors, golden.early) == ([], [])
    assert golden == replace(alone, events=golden.events)
    assert [one.split()[0] for one in golden.events - alone.events] == ["ConcurrentUpgradeBlocked"]
    for happens, interruption in mishaps(1, golden.writes, beginning=list(QUEUED).index(holder), sweep=sweep):
        ending = await run(what, holder=holder, interruption=interruption)
        assert (ending.events - golden.events, golden.events - ending.events) == (Counter(), Counter()), happens
        assert ending == golden, happens


async def refuse(*, interruption: Interruption = UNDISTURBED) -> tuple[Any, ...]:
    """Request an attempt without the image that it needs; return the end, and the number of writes."""
    scenario = RepairableScenario.of("three-nodes", **FAILING["a node's pre-drain"].faults)
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
async def test_successor_refuses_an_attempt(sweep: Sweep) -> None:
    *golden, writes = await refuse()
    assert len(golden[3]) == 2
    assert golden[2] == []
    for number in sweep.points(1, writes, stride=5):
        for interruption in (Interruption(die_at=number, after=True), Interruption(lose_at=number)):
            *ending, _ = await refuse(interruption=interruption)
            assert ending == golden, interruption
