"""A paused plan under kills: after every write from the pause to the end, and by users who change their minds."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_crash_sweep_ends import mishaps
from tests.pipeline.test_holds import let_past, until_held, with_option
from tests.pipeline.test_holds_beside import WORKERS
from tests.pipeline.test_plan_pauses import pause, resume
from tests.support.cluster.cluster_state import created_objects, overridden_settings
from tests.support.managers.announcements import steps
from tests.support.managers.begun_while_paused import BegunWhilePaused, holds
from tests.support.managers.manager_restarts import UNDISTURBED, Interruption, Restarts, in_background, restarted
from tests.support.managers.sweep import Sweep, cases
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import UpgradeRun, condition, node_states, phases_of
from upgrade_manager.api.holds import HoldPoint, held_nodes
from upgrade_manager.api.phases import PHASE_VALUES, SUCCEEDED
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError

#: Virtual seconds after which an event without a response is sent again.
_EVENT_RETRY = 15.0
HOLDING = with_option(pauseBefore=list(map(str, HoldPoint)))
#: By where the upgrade holds: the point at which a user pauses it, and the node.
HOLDS: dict[str, tuple[str, str]] = {
    "before RepoCreate": ("ISODownloading", ""),
    "before ClusterUpgrade": ("ImagePreloading", ""),
    "before NodeUpgrade": ("ClusterUpgrading", ""),
    "before the first node": ("NodeUpgrading", ""),
    "before a drain whose VMs have left": ("PreDraining", "node-2"),
    "before the next node": ("PreDrained", "node-0"),
    "before ImageCleanup": ("PreDrained", "node-1"),
}
#: By the kind of the toolkit: an upgrade whose second node holds before each of its steps.
KINDS = {"harvester": RunOptions(), "own": OWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An upgrade that was paused and has succeeded; equal to others with the same end."""

    phases: list[str]
    states: dict[str, str]
    created: list[str]
    jobs: Counter[str]
    settings: list[Any]
    events: Counter[str]
    begun: list[str]
    pauses: int
    errors: list[str] = field(compare=False)
    writes: int = field(compare=False)


async def run(where: str, *, interruption: Interruption = UNDISTURBED) -> Run:
    """Run an upgrade that is paused and continued, and whose manager is interrupted meanwhile."""
    point, node = HOLDS[where]
    async with Simulation("three-nodes", scale=0) as simulation:
        watch, stage = BegunWhilePaused(simulation), await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan()
            await stage.reach(point, node=node)
            await pause(stage)
        async with restarted(stage, [interruption]) as managers:
            await stage.until_plan(holds)
            # An event is sent with the reconcile after the pause, and times have seconds.
            await asyncio.sleep(60)
            await resume(stage)
            await stage.until(SUCCEEDED)
            await stage.settle()
            if interruption != UNDISTURBED:
                await asyncio.sleep(_EVENT_RETRY)
        return await _result(stage, watch, simulation, managers)


async def _result(stage: UpgradeRun, watch: BegunWhilePaused, simulation: Simulation, managers: Restarts) -> Run:
    events = await stage.events()
    errors = [event for event in events if event["reason"] == "ReconcileError"]
    plan = await stage.plan()
    return Run(
        phases=phases_of(plan),
        states=node_states(plan),
        created=await created_objects(simulation),
        jobs=Counter(name for path, name in stage.ledger.created if path.endswith(("/jobs", "/plans"))),
        settings=await overridden_settings(simulation),
        events=steps(event for event in events if event not in errors),
        begun=watch.found,
        pauses=watch.pauses,
        errors=[event["message"] for event in errors],
        writes=len(managers.lives[0].wire.writes),
    )


@pytest.mark.full
@pytest.mark.rule("control: nothing of a pause is lost or repeated when the manager is killed")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("where", cases(HOLDS, default=["before a drain whose VMs have left", "before ClusterUpgrade"]))
async def test_successor_holds_and_goes_on(where: str, sweep: Sweep) -> None:
    golden = await run(where)
    assert (golden.errors, golden.created, golden.begun, golden.pauses) == ([], [], [], 1)
    assert golden.phases == [*PHASE_VALUES, SUCCEEDED]
    assert max(golden.jobs.values()) == 1
    paused = {reason: count for reason, count in golden.events.items() if reason.startswith("Upgrade")}
    assert [one.split()[0] for one in paused] == ["UpgradePaused", "UpgradeContinued", "UpgradeSucceeded"]
    for happens, interruption in mishaps(1, golden.writes, beginning=list(HOLDS).index(where), sweep=sweep):
        ending = await run(where, interruption=interruption)
        assert (ending.events - golden.events, golden.events - ending.events) == (Counter(), Counter()), happens
        assert ending == golden, happens


async def _let_past_later(stage: UpgradeRun, node: str, point: str) -> None:
    await until_held(stage, node, point)
    # An event is sent with the reconcile after the pause, and times have seconds.
    await asyncio.sleep(60)
    await let_past(stage, f"{node}:{point}")


async def run_with_holds(kind: str, *, interruption: Interruption = UNDISTURBED) -> Run:
    """Run an upgrade whose nodes hold before their steps, and whose manager is interrupted while one goes on."""
    async with Simulation("three-nodes", scale=0) as simulation:
        watch, stage = BegunWhilePaused(simulation), await UpgradeRun.set_up(simulation)
        stage.options = KINDS[kind]
        async with stage.life():
            await stage.create_plan(HOLDING)
            for point in HoldPoint:
                await _let_past_later(stage, "node-0", point)
            await until_held(stage, "node-2", HoldPoint.DRAIN)
        async with restarted(stage, [interruption]) as managers:
            for point in HoldPoint:
                await _let_past_later(stage, "node-2", point)
            # A late response would otherwise let the last node hold in some runs.
            await until_held(stage, "node-1", HoldPoint.DRAIN)
            await asyncio.sleep(60)
            await stage.patch(spec={"nodeUpgradeOption": None})
            await stage.until(SUCCEEDED)
            await stage.settle()
            if interruption != UNDISTURBED:
                await asyncio.sleep(_EVENT_RETRY)
        return await _result(stage, watch, simulation, managers)


@pytest.mark.full
@pytest.mark.rule("control: a node that was let past goes on once, also when the manager is killed meanwhile")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", cases(KINDS, default=["own"]))
async def test_successor_lets_the_node_past(kind: str, sweep: Sweep) -> None:
    golden = await run_with_holds(kind)
    assert (golden.errors, golden.created, golden.begun) == ([], [], [])
    assert golden.phases == [*PHASE_VALUES, SUCCEEDED]
    assert max(golden.jobs.values()) == 1
    continued = [message for message in golden.events if message.startswith("NodeContinued")]
    assert len(continued) == 4
    for happens, interruption in mishaps(1, golden.writes, beginning=list(KINDS).index(kind), sweep=sweep):
        ending = await run_with_holds(kind, interruption=interruption)
        assert (ending.events - golden.events, golden.events - ending.events) == (Counter(), Counter()), happens
        assert ending == replace(golden, pauses=ending.pauses), happens


async def run_with_two_held(*, interruption: Interruption = UNDISTURBED) -> Run:
    """Run an upgrade of which one node goes on while another holds, and whose manager is interrupted then."""
    async with Simulation(WORKERS, scale=0) as simulation:
        watch, stage = BegunWhilePaused(simulation), await UpgradeRun.set_up(simulation)
        async with stage.life():
            await stage.create_plan(with_option(pauseAfter=3))
            await stage.until_plan(holds)
            await stage.patch_cluster(upgradeStrategy={"workerConcurrency": "2"})
            await stage.patch(spec={"nodeUpgradeOption": {"pauseAfter": None, "pauseBefore": [HoldPoint.DRAIN]}})
            await stage.until_plan(lambda plan: len(held_nodes(objects.status(plan))) == 2 and holds(plan))
            # An event is sent with the reconcile after the pause, and times have seconds.
            await asyncio.sleep(60)
        async with restarted(stage, [interruption]) as managers:
            await let_past(stage, "node-3:Drain")
            await stage.until_node("PostDrained", node="node-3")
            await _let_past_later(stage, "node-4", HoldPoint.DRAIN)
            await stage.until(SUCCEEDED)
            await stage.settle()
            if interruption != UNDISTURBED:
                await asyncio.sleep(_EVENT_RETRY)
        return await _result(stage, watch, simulation, managers)


@pytest.mark.rule("control: nothing of a pause is lost or repeated when the manager is killed")
@pytest.mark.timeout(300)
@pytest.mark.full
async def test_successor_lets_one_of_two_nodes_past(sweep: Sweep) -> None:
    golden = await run_with_two_held()
    assert (golden.errors, golden.created, golden.begun, golden.pauses) == ([], [], [], 3)
    paused = Counter(one.split()[0] for one in golden.events if one.startswith(("Upgrade", "NodeContinued")))
    assert paused == {"UpgradePaused": 3, "UpgradeContinued": 2, "NodeContinued": 2, "UpgradeSucceeded": 1}
    for happens, interruption in mishaps(1, golden.writes, beginning=0, sweep=sweep):
        ending = await run_with_two_held(interruption=interruption)
        assert (ending.events - golden.events, golden.events - ending.events) == (Counter(), Counter()), happens
        assert ending == golden, happens


async def _change_minds(stage: UpgradeRun, random: Random, *, times: int) -> None:
    """Pause and continue the plan at random moments, and continue it last; the first pause lasts until it holds."""
    await asyncio.sleep(random.uniform(0, 5))
    await pause(stage, "alice")
    await stage.until_plan(holds)
    await resume(stage, "bob")
    for _ in range(times):
        for change in (pause, resume):
            # The fastest upgrade takes half a minute.
            await asyncio.sleep(random.choice([0.0, 0.01, 0.3, 1.0, 3.0, 9.0]) * random.random())
            # The only node reboots with the API server.
            with_retries = 0
            while with_retries < 100:
                try:
                    await change(stage, random.choice(["alice", "bob"]))
                except KubeError:
                    with_retries += 1
                    await asyncio.sleep(1)
                else:
                    break


@pytest.mark.full
@pytest.mark.rule("control: nothing begins while the plan says that it holds, whenever users pause and continue it")
@pytest.mark.parametrize("seed", range(10))
async def test_nothing_begins_while_users_change_their_minds(seed: int) -> None:
    random = Random(seed)
    deaths = [Interruption(die_at=random.randint(5, 40), after=random.random() < 0.5) for _ in range(4)]
    async with Simulation(random.choice(["three-nodes", "one-node"])) as simulation:
        watch, stage = BegunWhilePaused(simulation), await UpgradeRun.set_up(simulation)
        async with restarted(stage, deaths), in_background(_change_minds(stage, random, times=25)):
            await stage.create_plan()
            plan = await stage.succeed()
    assert watch.found == []
    assert watch.pauses
    assert condition(plan, "Paused")[0] == ""
    assert max(Counter(stage.ledger.names("jobs")).values()) == 1
