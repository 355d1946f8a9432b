"""The manager is interrupted at every write of an upgrade, and must end where it would have ended.

An undisturbed run counts the writes. Then, for each of them (tests.support.managers.sweep), a new cluster with the same
seed: the manager dies before or after that write and another one starts, or it loses the response.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import end_state
from tests.support.managers.announcements import steps
from tests.support.managers.histories import history_events
from tests.support.managers.manager_restarts import UNDISTURBED, Interruption, restarted
from tests.support.managers.success_promise import SuccessPromise
from tests.support.managers.sweep import Goldens, Sweep
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, node_states, phases_of
from tests.support.random_runs import acts_on_objects, acts_on_settings
from tests.support.random_runs.operator import follow_remedies
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import restore_vm_config_map
from upgrade_manager.api.phases import PHASE_VALUES, PHASES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import CONFIG_MAPS

#: Virtual seconds after the end: events are sent again, and after an outage clients retry with growing intervals.
FAREWELL = 60.0
_TRIES = re.compile(r"(?<= failed) \d+ times\b")
#: Virtual seconds in which the manager and Rancher do all that they can.
LONG = 30.0
#: Beginnings of the events that every upgrade has.
OWN = ("PhaseTransition ", "PhaseCompleted ", "UpgradeSucceeded ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a run."""

    phase: str
    recorded: list[str]
    #: The generation that the plan records; none on a single node.
    generation: int | None
    state: dict[str, Any]
    repeated: list[tuple[str, str]]
    events: Counter[str]
    #: Of a case that keeps its rows.
    history: Counter[str]
    warnings: list[str]
    #: Broken clauses of what a success implies.
    broken: list[str]


async def _no_user(_: UpgradeRun) -> None:
    """Change nothing."""


async def _resume(stage: UpgradeRun) -> None:
    """Remove every paused node from spec.nodeUpgradeOption.pauseNodes."""
    while True:
        await asyncio.sleep(0.25)
        with contextlib.suppress(NotFound):
            plan = await stage.polled()
            listed = objects.spec(plan)["nodeUpgradeOption"]["pauseNodes"]
            left = [node for node in listed if node_states(plan).get(node) != "UpgradePaused"]
            if left != listed:
                await stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": left}})


async def _at_the_last_node(stage: UpgradeRun, *, act: Callable[[UpgradeRun], Coroutine[None, None, None]]) -> None:
    """Let a user act while the last node is paused, then resume it."""
    paused = False
    while not paused:
        await asyncio.sleep(1)
        # The API server is unavailable while one of two nodes reboots.
        with contextlib.suppress(Transient):
            await stage.until_node("UpgradePaused", node=LAST)
            paused = True
    await act(stage)
    await asyncio.sleep(LONG)
    await stage.patch(spec={"nodeUpgradeOption": {"pauseNodes": []}})


async def _drain_again(stage: UpgradeRun) -> None:
    """Let Rancher drain all nodes again, and follow the remedies: the node that takes the VMs is cordoned."""
    await _at_the_last_node(stage, act=UpgradeRun.plan_again)
    await follow_remedies(stage.client)


async def _remove_hooks(stage: UpgradeRun) -> None:
    await stage.patch_cluster(upgradeStrategy=None)


async def _delete_repository(stage: UpgradeRun) -> None:
    await acts_on_objects.repository_deleted(stage)
    await acts_on_objects.service_deleted(stage)


async def _change_settings(stage: UpgradeRun) -> None:
    """Change every setting that the upgrade has overridden."""
    await acts_on_settings.interval_set(stage)
    await acts_on_settings.descheduler_enabled(stage)
    await stage.patch_cluster(upgradeStrategy={"workerConcurrency": "4"})


async def _leave_list(stage: UpgradeRun) -> None:
    """Leave the list of VMs of an earlier plan of that name."""
    metadata = {"name": restore_vm_config_map(stage.name), "namespace": HARVESTER_SYSTEM}
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"node-2": "default/vm-9"}}
    await stage.client.create(CONFIG_MAPS, found)
    # The plan is the younger object.
    await asyncio.sleep(LONG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An upgrade that is interrupted."""

    spec: dict[str, Any]
    scenario: Scenario
    user: Callable[[UpgradeRun], Coroutine[None, None, None]] = _no_user
    #: Changes by others before the plan is created.
    before: Callable[[UpgradeRun], Coroutine[None, None, None]] = _no_user
    #: Part of the first write to interrupt; else all are.
    since: str = ""
    #: Reasons of the Warning events of every run.
    warned: tuple[str, ...] = ()
    #: True if users change settings, which then stay so.
    changes_settings: bool = False
    #: False where a crash may lose the row of a warning of the last minute.
    keeps_rows: bool = True
    #: Reason of a warning of what Rancher may do while no manager runs; the plan's status may show it, too.
    meanwhile: str = ""
    #: Names of the objects that every run creates twice.
    repeated: tuple[str, ...] = ()


THREE, ONE, TWO = (scenarios.load(name) for name in ("three-nodes", "one-node", "two-nodes"))
#: Harvester would refuse to cordon a node while the other one is drained, until a user uncordons that one.
TWO_CORDONED = TWO.changed(harvester={"node_validator": False})
#: VMs that cannot move have to be shut down; one of them is not started again.
STUCK = THREE.changed(
    vms={"count": 0, "machines": [{"name": f"vm-{i}", "node": f"node-{i}", "migratable": False} for i in (0, 1)]},
    faults=[{"work": "restore-vm", "node": "node-0"}],
)
#: Rancher comes to this node last, so that a user acts while the others are done.
LAST = "node-1"
PAUSING_LAST = {**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": [LAST]}}
RANCHER = "clusters/local"
PAUSING = {**BY_VERSION, "nodeUpgradeOption": {"pauseNodes": ["node-0", "node-1"]}}
ORDINARY = {
    "three nodes by version": Case(spec=BY_VERSION, scenario=THREE),
    "three nodes by image": Case(spec=BY_IMAGE, scenario=THREE),
    "one node by version": Case(spec=BY_VERSION, scenario=ONE),
    "one node by image": Case(spec=BY_IMAGE, scenario=ONE),
    "two nodes by version": Case(spec=BY_VERSION, scenario=TWO),
    "two nodes by image": Case(spec=BY_IMAGE, scenario=TWO),
}
SPECIAL = {
    "two paused nodes": Case(spec=PAUSING, scenario=THREE, user=_resume, since=RANCHER),
    "one VM started again and one not": Case(
        spec={**BY_VERSION, "restoreVM": True},
        scenario=STUCK,
        since=RANCHER,
        warned=("RestoreVMFailed",),
        keeps_rows=False,
    ),
    "drain hooks added again": Case(
        spec=PAUSING_LAST,
        scenario=THREE,
        user=partial(_at_the_last_node, act=_remove_hooks),
        since=RANCHER,
        warned=("DrainHooksAdded",),
        # Without hooks it drains no node for the manager that is down.
        meanwhile="UpgradedUndrained",
    ),
    "a done node drained again": Case(
        spec=PAUSING_LAST,
        # Of three nodes Rancher could come back to the second one after the node upgrade.
        scenario=TWO_CORDONED,
        user=_drain_again,
        since=RANCHER,
        warned=("NoMigrationTarget", "NodeUncordoned"),
        # The raised generation is a new request for the paused node, too.
        repeated=("upgrade-node-upgrade-pre-drain-node-0", "upgrade-node-upgrade-pre-drain-node-1"),
    ),
    "the repository created again": Case(
        spec=PAUSING_LAST,
        scenario=THREE,
        user=partial(_at_the_last_node, act=_delete_repository),
        since=RANCHER,
        repeated=("upgrade-repo", "upgrade-repo"),
    ),
    "settings that users changed": Case(
        spec=PAUSING_LAST,
        scenario=THREE,
        user=partial(_at_the_last_node, act=_change_settings),
        since=RANCHER,
        warned=("SettingNotRestored",) * 2,
        changes_settings=True,
    ),
    "a list of VMs of an earlier plan": Case(
        spec={**BY_VERSION, "restoreVM": True},
        scenario=STUCK,
        before=_leave_list,
        since="configmaps",
        warned=("RestoreVMFailed",),
        keeps_rows=False,
    ),
}
CASES = ORDINARY | SPECIAL
BEFORE, AFTER, LOST = "killed before", "killed after", "no response to"
RUNS = [*product(ORDINARY, (BEFORE, AFTER, LOST)), *product(SPECIAL, (AFTER, LOST))]
#: Those of the default tier: a crash after one write is much like a crash before the next one.
DEFAULT = [("one node by version", AFTER), ("one node by version", LOST)]


def _marks(name: str, how: str) -> list[pytest.MarkDecorator]:
    if (name, how) in DEFAULT:
        return []
    is_like_another = how == BEFORE or (name in ORDINARY and CASES[name].spec == BY_IMAGE and how == LOST)
    return [pytest.mark.exhaustive if is_like_another else pytest.mark.full]


async def _upgrade(case: Case, interruption: Interruption = UNDISTURBED) -> tuple[Ending, list[str]]:
    """Return the end of a run, and the writes of its first manager."""
    async with Simulation(case.scenario, scale=0) as simulation, asyncio.TaskGroup() as group:
        stage, promise = await UpgradeRun.set_up(simulation), await SuccessPromise.of(simulation)
        acting = group.create_task(case.user(stage))
        await case.before(stage)
        async with restarted(stage, [interruption]) as managers:
            await stage.create_plan(case.spec)
            phase = await stage.until_ended()
            await asyncio.sleep(FAREWELL)
        acting.cancel()
        broken = await promise.broken(settings=not case.changes_settings)
        rows = await history_events(stage) if case.keeps_rows else []
        return await _ending(stage, phase, broken, rows), managers.lives[0].wire.writes


async def _ending(stage: UpgradeRun, phase: str, broken: list[str], rows: list[Object]) -> Ending:
    plan, events = await stage.plan(), _alike(await stage.events())
    return Ending(
        phase=phase,
        recorded=phases_of(plan),
        generation=objects.status(plan).get("provisionGeneration"),
        state=await end_state(stage.simulation),
        repeated=[name for name, count in Counter(stage.ledger.created).items() if count > 1],
        events=steps(events),
        history=steps(_alike(rows)),
        warnings=sorted(f"{event['reason']} {event['message']}" for event in events if event["type"] == "Warning"),
        broken=broken,
    )


def _alike(events: list[Object]) -> list[Object]:
    """Leave out how often a Job has failed: while no manager runs, it may do so once more."""
    return [{**event, "message": _TRIES.sub(" several times", event["message"])} for event in events]


GOLDEN: Goldens[str, tuple[Ending, list[str]]] = Goldens(lambda name: _upgrade(CASES[name]))


def _interruption(how: str, write: int) -> Interruption:
    return Interruption(lose_at=write) if how == LOST else Interruption(die_at=write, after=how == AFTER)


@pytest.mark.rule(
    "nodes: a crash neither loses an original value nor records the override as one",
    "nodes: the cluster is patched once when the manager crashes between patch and record",
    "nodes: the cluster is patched once when the response to the patch is lost",
    "nodes: the manager resumes after it went down with the single node's reboot",
    "pipeline: a lost API response does not change the outcome",
    "pipeline: every reconcile can be interrupted and repeated with the same outcome",
    "nodes: each milestone of a node is recorded once, after any crash",
    "pipeline: no crash loses or repeats a row of the history, but an error's of the last minute",
    "pipeline: each phase event exists exactly once, after any crash",
    "pipeline: settings changed and given back are events with old and new value, once after any crash",
    "workloads: an upgrade creates a fixed set of objects, each once",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "how"),
    [pytest.param(*run, id=", ".join(run), marks=_marks(*run)) for run in RUNS],
)
async def test_interruption_only_delays_the_end(name: str, how: str, sweep: Sweep) -> None:
    case = CASES[name]
    golden, writes = await GOLDEN.of(name)
    _check(golden, golden, "undisturbed")
    assert sorted(name for _, name in golden.repeated) == sorted(case.repeated)
    assert tuple(warning.partition(" ")[0] for warning in golden.warnings) == case.warned
    first = next(number for number, write in enumerate(writes, 1) if case.since in write)
    for write in sweep.points(first, len(writes), row=RUNS.index((name, how))):
        ending, _ = await _upgrade(case, _interruption(how, write))
        if how == LOST:
            ending, expected = _tolerant(ending, case), _tolerant(golden, case)
        else:
            expected = golden
        if case.meanwhile and any(warning.startswith(case.meanwhile) for warning in ending.warnings):
            assert how == AFTER
            ending = _without(ending, case.meanwhile, state=golden.state)
        _check(ending, expected, f"{how} write {write} of {len(writes)}")


def _tolerant(ending: Ending, case: Case) -> Ending:
    """Remove the error of the lost response, and how often the events of lasting blockers were counted.

    The repeated request may come after the ten minutes in which such an event is not counted again.
    """
    return replace(
        ending,
        events=_uncounted(ending.events, case),
        history=_uncounted(ending.history, case),
        warnings=[warning for warning in ending.warnings if not warning.startswith("ReconcileError")],
    )


def _without(ending: Ending, reason: str, *, state: dict[str, Any]) -> Ending:
    """Remove the warnings of that reason, and what the plan shows of their cause."""
    plan = next(named for named in state if named.startswith("UpgradePlan "))
    events, history = (
        Counter({one: count for one, count in counted.items() if not one.startswith(reason)})
        for counted in (ending.events, ending.history)
    )
    warnings = [warning for warning in ending.warnings if not warning.startswith(reason)]
    shown = {**ending.state, plan: state[plan]}
    return replace(ending, events=events, history=history, warnings=warnings, state=shown)


def _uncounted(events: Counter[str], case: Case) -> Counter[str]:
    kept = [event for event in events.elements() if not event.startswith("ReconcileError")]
    return Counter(event.rpartition(" x")[0] if event.startswith(case.warned) else event for event in kept)


def _check(ending: Ending, golden: Ending, crash: str) -> None:
    assert ending.phase == SUCCEEDED, crash
    assert ending.broken == [], crash
    assert ending.recorded == [*PHASE_VALUES, SUCCEEDED], crash
    assert ending == golden, crash
    assert sum(count for event, count in ending.events.items() if event.startswith(OWN)) == 2 * len(PHASES) + 1, crash
