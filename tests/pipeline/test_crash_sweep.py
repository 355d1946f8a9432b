"""The manager is killed before and after every write of an upgrade, and must end where it would have ended.

A golden run counts the writes. Then, for each of them (tests.support.sweep), a new cluster with the same seed: the
manager dies at that write, another one starts, and the end is compared with the golden one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from hack.cluster import scenario as scenarios
from hack.simulation import Simulation
from tests.support.cluster_state import end_state
from tests.support.sweep import cases, shares
from tests.support.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, phases_of
from upgrade_manager.api.phases import PHASE_VALUES, PHASES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from hack.cluster.scenario import Scenario
    from tests.support.sweep import Sweep

#: The writes are dealt out to so many tests, which may run at the same time.
SHARES = 4
#: Those of smaller clusters are fewer.
SMALL, SMALL_SHARES = ("one-node", "two-nodes"), 2
#: Virtual seconds after the end in which the last events are sent.
FAREWELL = 2.0
#: The same after an outage of the API server: clients retry with growing intervals and observe the end late.
LONG_FAREWELL = 60.0
#: Virtual seconds after which an event without a response is sent again.
EVENT_RETRY = 15.0
#: How the events begin that every upgrade has.
OWN = ("PhaseTransition ", "PhaseCompleted ", "UpgradeSucceeded ")
PLAIN = scenarios.load("three-nodes")
#: VMs that cannot move have to be shut down; one of them is not started again.
STUCK = PLAIN.changed(
    vms={"count": 0, "machines": [{"name": f"vm-{i}", "node": f"node-{i}", "migratable": False} for i in (0, 1)]},
    faults=[{"work": "restore-vm", "node": "node-0"}],
)
Points: TypeAlias = "Callable[[int, int], range]"
User: TypeAlias = "Callable[[UpgradeRun], Coroutine[None, None, None]]"


SPECS = [
    pytest.param(BY_VERSION, id="by-version"),
    pytest.param(BY_IMAGE, id="by-image", marks=pytest.mark.full),
]
#: Whether a crash comes after the write. A crash after one write is much like a crash before the next one.
WHEN = [pytest.param(False, id="before", marks=pytest.mark.full), pytest.param(True, id="after")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended."""

    phase: str
    recorded: list[str]
    #: The generation that the plan records; none on a single node.
    generation: int | None
    state: dict[str, Any]
    created: list[tuple[str, str]]
    events: Counter[str]
    warnings: list[str]
    #: Writes of the first life.
    writes: int
    #: The first of them that is about Rancher, with which the nodes' upgrade begins.
    special: int


async def _no_user(_: UpgradeRun) -> None:
    """Change nothing."""


async def _let_go(stage: UpgradeRun) -> None:
    """Remove every paused node from spec.nodeUpgradeOption.pauseNodes."""
    while True:
        await asyncio.sleep(0.25)
        with contextlib.suppress(NotFound):
            plan = await stage.plan()
            states = objects.status(plan).get("nodeUpgradeStatuses") or {}
            listed = objects.spec(plan)["nodeUpgradeOption"]["pauseNodes"]
            left = [node for node in listed if states.get(node, {}).get("state") != "UpgradePaused"]
            if left != listed:
                patch = MergePatch({"spec": {"nodeUpgradeOption": {"pauseNodes": left}}})
                await stage.simulation.client().patch(UPGRADE_PLANS, stage.name, patch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An upgrade in which something happens that is not in every one."""

    spec: dict[str, Any]
    scenario: Scenario
    user: User = _no_user
    #: Reasons of the Warning events that it has, whatever crashes.
    warned: tuple[str, ...] = ()


async def _upgrade(
    spec: dict[str, Any],
    *,
    scenario: str | Scenario = "three-nodes",
    user: User = _no_user,
    die_at: int = 0,
    after: bool = False,
    lose_at: int = 0,
) -> Ending:
    async with Simulation(scenario, scale=0) as simulation, asyncio.TaskGroup() as group:
        stage = await UpgradeRun.set_up(simulation)
        acting = group.create_task(user(stage))
        async with stage.life(die_at=die_at, after=after, lose_at=lose_at) as first:
            await stage.create_plan(spec)
            phase = await stage.until_ended(died=first.wire.died)
            await asyncio.sleep(LONG_FAREWELL if scenario in SMALL else EVENT_RETRY if lose_at else FAREWELL)
        if first.wire.died.is_set():
            async with stage.life(seed="successor"):
                phase = await stage.until_ended()
                await asyncio.sleep(LONG_FAREWELL if scenario in SMALL else FAREWELL)
        acting.cancel()
        return await _ending(stage, phase, writes=first.wire.writes)


async def _ending(stage: UpgradeRun, phase: str, *, writes: list[str]) -> Ending:
    plan, events = await stage.plan(), await stage.events()
    return Ending(
        phase=phase,
        recorded=phases_of(plan),
        generation=objects.status(plan).get("provisionGeneration"),
        state=await end_state(stage.simulation),
        created=stage.ledger.created,
        events=Counter(f"{event['reason']} {event['message']} x{event['count']}" for event in events),
        warnings=[f"{event['reason']} {event['message']}" for event in events if event["type"] == "Warning"],
        writes=len(writes),
        special=next((number for number, write in enumerate(writes, 1) if "clusters/local" in write), 1),
    )


@pytest.mark.rule(
    "nodes: a crash neither loses an original value nor records the override as one",
    "nodes: the cluster is patched once when the manager crashes between patch and record",
    "pipeline: every reconcile can be interrupted and repeated with the same outcome",
    "pipeline: each phase event exists exactly once, after any crash",
    "workloads: an upgrade creates a fixed set of objects, each once",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", shares(SHARES))
@pytest.mark.parametrize("after", WHEN)
@pytest.mark.parametrize("spec", SPECS)
async def test_crash_only_delays_the_end(spec: dict[str, Any], *, after: bool, share: int, sweep: Sweep) -> None:
    await _sweep(spec, "three-nodes", after=after, points=partial(sweep.points, share=share, shares=SHARES))


@pytest.mark.rule(
    "nodes: the manager resumes after it went down with the single node's reboot",
    "pipeline: every reconcile can be interrupted and repeated with the same outcome",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", shares(SMALL_SHARES))
@pytest.mark.parametrize("after", WHEN)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("scenario", cases(SMALL, default=["one-node"]))
async def test_crash_only_delays_the_end_of_small_clusters(
    scenario: str, spec: dict[str, Any], *, after: bool, share: int, sweep: Sweep
) -> None:
    await _sweep(spec, scenario, after=after, points=partial(sweep.points, share=share, shares=SMALL_SHARES))


CASES = [
    pytest.param(
        Case(
            spec={**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": ["node-0", "node-1"]}},
            scenario=PLAIN,
            user=_let_go,
        ),
        id="two nodes held back",
    ),
    pytest.param(
        Case(spec={**BY_VERSION, "restoreVM": True}, scenario=STUCK, warned=("RestoreVMFailed",)),
        id="one VM started again and one not",
    ),
]


@pytest.mark.rule("pipeline: every reconcile can be interrupted and repeated with the same outcome")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", shares(SHARES))
@pytest.mark.parametrize("how", ["killed before", pytest.param("no response to", marks=pytest.mark.full)])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.thin
async def test_crash_only_delays_the_end_of(case: Case, how: str, share: int, sweep: Sweep) -> None:
    golden = await _upgrade(case.spec, scenario=case.scenario, user=case.user)
    assert golden.phase == SUCCEEDED
    assert tuple(warning.partition(" ")[0] for warning in golden.warnings) == case.warned
    for write in sweep.points(golden.special, golden.writes, share=share, shares=SHARES):
        # Killed after one write is killed before the next.
        fault: dict[str, Any] = {"die_at" if how == "killed before" else "lose_at": write}
        ending = await _upgrade(case.spec, scenario=case.scenario, user=case.user, **fault)
        _forget_errors(ending)
        _compare(ending, golden, f"{how} write {write} of {golden.writes}")


async def _sweep(spec: dict[str, Any], scenario: str, *, after: bool, points: Points) -> None:
    golden = await _upgrade(spec, scenario=scenario)
    assert golden.phase == SUCCEEDED
    assert golden.warnings == []
    for write in points(1, golden.writes):
        ending = await _upgrade(spec, scenario=scenario, die_at=write, after=after)
        _compare(ending, golden, f"killed {'after' if after else 'before'} write {write} of {golden.writes}")


@pytest.mark.rule(
    "nodes: a crash neither loses an original value nor records the override as one",
    "nodes: the cluster is patched once when the response to the patch is lost",
    "pipeline: a lost API response does not change the outcome",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", shares(SHARES))
async def test_lost_response_changes_nothing(share: int, sweep: Sweep) -> None:
    await _lose(BY_VERSION, "three-nodes", points=partial(sweep.points, share=share, shares=SHARES))


@pytest.mark.rule("pipeline: a lost API response does not change the outcome")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("scenario", cases(SMALL, default=["one-node"]))
async def test_lost_response_changes_nothing_on_small_clusters(
    scenario: str, spec: dict[str, Any], sweep: Sweep
) -> None:
    await _lose(spec, scenario, points=sweep.points)


async def _lose(spec: dict[str, Any], scenario: str, *, points: Points) -> None:
    golden = await _upgrade(spec, scenario=scenario)
    for write in points(1, golden.writes):
        ending = await _upgrade(spec, scenario=scenario, lose_at=write)
        _forget_errors(ending)
        _compare(ending, golden, f"no response to write {write} of {golden.writes}")


def _forget_errors(ending: Ending) -> None:
    """Compare without the error itself, which is expected."""
    for event in [event for event in ending.events if event.startswith("ReconcileError")]:
        del ending.events[event]
    ending.warnings[:] = [warning for warning in ending.warnings if not warning.startswith("ReconcileError")]


def _compare(ending: Ending, golden: Ending, crash: str) -> None:
    assert ending.phase == SUCCEEDED, crash
    assert ending.recorded == [*PHASE_VALUES, SUCCEEDED], crash
    assert ending.generation == golden.generation, crash
    assert ending.state == golden.state, crash
    assert ending.warnings == golden.warnings, crash
    assert ending.events == golden.events, crash
    twice = [name for name, count in Counter(ending.created).items() if count > 1]
    assert twice == [], crash
    assert sum(count for event, count in ending.events.items() if event.startswith(OWN)) == 2 * len(PHASES) + 1, crash
