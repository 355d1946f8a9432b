"""The manager is interrupted at every write of what it owes: its ledger, what passes on, and what it takes over.

Each story has a range of writes, from one mark to the next; the managers' other writes are those of
test_crash_sweep.py and test_crash_sweep_ends.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.ending.test_orphaned_jobs import COMPONENT_JOB, until_job
from tests.pipeline.ending.test_passing_on import KEEPING
from tests.pipeline.ending.test_takeover import began
from tests.support.cluster.cluster_state import end_state
from tests.support.cluster.host_changes import changed_hosts
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.earlier_snapshots import Earlier
from tests.support.managers.manager_restarts import UNDISTURBED, Interruption, restarted
from tests.support.managers.success_promise import SuccessPromise
from tests.support.managers.sweep import Sweep, every_second
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun
from upgrade_manager.api.keys import ANNOTATION_ACKNOWLEDGED
from upgrade_manager.api.ledger import PASSED, of_kind, recorded_entries
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import EVENTS, UPGRADE_PLANS
from upgrade_manager.pipeline.controller import COMPONENT

Mark = Callable[[], None]
Act = Callable[[UpgradeRun, Mark], Awaitable[None]]
#: Virtual seconds after the end, in which events are sent again.
FAREWELL = 60.0
#: VMs that have to be shut down.
FIXED: dict[str, Any] = {
    "vms": {
        "count": 0,
        "machines": [{"name": f"vm-{i}", "node": f"node-{i}", "migratable": False} for i in range(3)],
    }
}
RESTORING: dict[str, Any] = {**BY_VERSION, "restoreVM": True}


async def _succeed(stage: UpgradeRun, mark: Mark) -> None:
    """Interrupt the node upgrade."""
    await stage.create_plan(RESTORING)
    await stage.until_recorded("NodeUpgrading")
    mark()
    await stage.until_recorded("NodeUpgraded")
    mark()
    await stage.until_ended()


def _between(first: str, last: str) -> Act:
    """Interrupt what happens from one phase value to another, or to a node's state."""

    async def act(stage: UpgradeRun, mark: Mark) -> None:
        await stage.create_plan()
        await stage.until_recorded(first)
        mark()
        await stage.reach(last)
        mark()
        await stage.until_ended()

    return act


async def _next(stage: UpgradeRun) -> None:
    """Let the next plan run to its end."""
    following = replace(stage, name="next")
    await following.create_plan()
    await following.until_ended()


async def _keep_images(stage: UpgradeRun, mark: Mark) -> None:
    """Interrupt the clean-up of images, of which one node's fails."""
    await stage.create_plan()
    await stage.until_recorded("CleaningUp")
    mark()
    await stage.until_ended()


async def _undo_early(stage: UpgradeRun, mark: Mark) -> None:
    """Fail, and interrupt what undoes the changes of all hosts."""
    await stage.create_plan()
    await stage.until_ended()
    mark()
    await asyncio.sleep(FAREWELL)
    mark()
    _scenario(stage).repair()
    await _next(stage)


async def _pass_on(stage: UpgradeRun, mark: Mark) -> None:
    """Fail, and interrupt the acceptance of the next plan up to its first node."""
    await stage.create_plan()
    await stage.until_ended()
    await asyncio.sleep(FAREWELL)
    _scenario(stage).repair()
    mark()
    following = replace(stage, name="next")
    await following.create_plan()
    await following.until_recorded("ISODownloading")
    mark()
    await following.until_ended()


async def _delete(stage: UpgradeRun, mark: Mark) -> None:
    """Interrupt the deletion in mid-drain, and the acceptance of the next plan."""
    await stage.create_plan()
    await stage.until_node("PreDrained")
    mark()
    await stage.client.delete(UPGRADE_PLANS, stage.name)
    await stage.until("deleted")
    following = replace(stage, name="next")
    await following.create_plan()
    await following.until_recorded("ISODownloading")
    mark()
    await following.until_ended()


async def _fail_suspended(stage: UpgradeRun, mark: Mark) -> None:
    """Fail while they are suspended, interrupt the end, and let the next plan succeed."""
    await stage.create_plan()
    await stage.until_recorded("ClusterUpgrading")
    mark()
    await stage.until_ended()
    await asyncio.sleep(FAREWELL)
    mark()
    _scenario(stage).repair()
    await _next(stage)


async def _delete_suspended(stage: UpgradeRun, mark: Mark) -> None:
    """Delete the plan while they are suspended, interrupt that, and let the next plan succeed."""
    await stage.create_plan()
    await stage.until_recorded("ClusterUpgrading")
    mark()
    await stage.client.delete(UPGRADE_PLANS, stage.name)
    await stage.until("deleted")
    mark()
    await _next(stage)


async def _delete_during_the_job(stage: UpgradeRun, mark: Mark) -> None:
    """Delete the plan while the Job of the components runs, interrupt that, and let the next plan succeed."""
    await stage.create_plan()
    await stage.until_recorded("ClusterUpgrading")
    await until_job(stage, COMPONENT_JOB, "active", pause=0.01)
    mark()
    await stage.client.delete(UPGRADE_PLANS, stage.name)
    await stage.until("deleted")
    mark()
    await _next(stage)


async def _take_over(stage: UpgradeRun, mark: Mark) -> None:
    """Interrupt the first writes of a manager that finds an earlier one's plan."""
    mark()
    await stage.until_ended()


def _scenario(stage: UpgradeRun) -> RepairableScenario:
    scenario = stage.simulation.scenario
    assert isinstance(scenario, RepairableScenario)
    return scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """An upgrade that is interrupted between two marks."""

    act: Act
    changes: dict[str, Any] = field(default_factory=dict)
    options: RunOptions = field(default_factory=RunOptions)
    #: The most writes that are interrupted.
    most: int = 100
    #: Another manager that begins the plan.
    earlier: Earlier | None = None

    async def prepare(self, simulation: Simulation) -> UpgradeRun:
        if self.earlier is not None:
            return await began(simulation, BY_VERSION, "NodeUpgrading", manager=self.earlier)
        return replace(await UpgradeRun.set_up(simulation), options=self.options)


#: KubeVirt's updates of VMs are suspended before the Job; the hosts are changed then, and before the first node.
_SUSPENDING = _between("ImagePreloaded", "ClusterUpgraded")
_CHANGING = _between("ImagePreloaded", "PreDraining")
#: Both are given back after the last node.
_GIVING_BACK = _between("NodeUpgraded", "CleaningUp")
STORIES = {
    "VMs that the manager records": Story(act=_succeed, changes=FIXED),
    "VMs that our toolkit records": Story(act=_succeed, changes=FIXED, options=OWN),
    "suspended updates of VMs": Story(act=_SUSPENDING),
    "suspended updates, our toolkit": Story(act=_SUSPENDING, options=OWN),
    "resumed updates of VMs": Story(act=_GIVING_BACK),
    "suspended updates of a failed plan": Story(act=_fail_suspended, changes=fault("manifests")),
    "suspended updates of a deleted plan": Story(act=_delete_suspended),
    "updates of a plan that waits for its Job": Story(act=_delete_during_the_job),
    "images that stay": Story(act=_keep_images, changes=fault("image-cleanup", SECOND)),
    "hosts that are changed": Story(act=_CHANGING, options=OWN, most=40),
    "hosts that are given back": Story(act=_GIVING_BACK, options=OWN, most=40),
    "hosts of a failed plan": Story(act=_undo_early, options=OWN, changes=fault("skip-on", SECOND)),
    "a failed plan's debts": Story(act=_pass_on, changes={**FIXED, **KEEPING, **fault("post-drain", SECOND)}),
    "a deleted plan's debts": Story(act=_delete, changes={**FIXED, **KEEPING}),
    **{f"a plan of {one}": Story(act=_take_over, earlier=one, most=25) for one in Earlier},
}
AFTER, LOST = "killed after", "no response to"
DEFAULT = [("a failed plan's debts", AFTER)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a story."""

    state: dict[str, Any]
    #: Reasons and messages of the manager's Warning events, each once.
    warnings: frozenset[tuple[str, str]]
    #: Broken clauses of what a success implies.
    broken: list[str]


async def _ending_of(story: Story, interruption: Interruption = UNDISTURBED) -> tuple[Ending, list[str], list[int]]:
    """Return the end, the writes of the first manager, and their numbers at the marks."""
    marks: list[int] = []
    scenario = RepairableScenario.of(toolkit_writes_methods=True, **story.changes)
    async with Simulation(scenario, scale=0) as simulation:
        promise = await SuccessPromise.of(simulation)
        stage = await story.prepare(simulation)
        async with restarted(stage, [interruption]) as managers:
            await asyncio.sleep(0)
            await story.act(stage, lambda: marks.append(len(managers.lives[0].wire.writes)))
            await asyncio.sleep(FAREWELL)
        events = [one for one in (await stage.client.list(EVENTS)).items if one["source"].get("component") == COMPONENT]
        warned = {(one["reason"], one["message"]) for one in events if one["type"] == "Warning"}
        ending = Ending(
            state=_without_uids(await end_state(simulation)),
            warnings=frozenset(
                (reason, _lasting(reason, text)) for reason, text in warned if reason != "ReconcileError"
            ),
            broken=[*await promise.broken(settings=story.earlier is not Earlier.GO), *changed_hosts(simulation)],
        )
        return ending, managers.lives[0].wire.writes, marks


def _lasting(reason: str, text: str) -> str:
    """Return the text, unless it follows what Rancher requests until then, which a restart gives time to."""
    return "" if reason == "UpgradeFrozen" else text


def _without_uids(state: dict[str, Any]) -> dict[str, Any]:
    """Remove the counters of requests, which have the uid of a plan that is created at a random time."""
    for one in state.values():
        objects.annotations_of(one).pop(ANNOTATION_ACKNOWLEDGED, None)
    return state


def _check(ending: Ending, golden: Ending, crash: str) -> None:
    plans = [one for title, one in ending.state.items() if title.startswith("UpgradePlan ")]
    for status in map(objects.status, plans):
        assert of_kind(recorded_entries(status), *PASSED) == [], crash
    assert "Succeeded" in [objects.status(one)["currentPhase"] for one in plans], crash
    assert ending.broken == [], crash
    assert ending.warnings == golden.warnings, crash
    assert ending.state == golden.state, crash


@pytest.mark.full
@pytest.mark.rule(
    "nodes: Succeeded requires the ledger to be settled; VMs that are off are named in the final condition",
    "nodes: the next plan that passes its checks copies what passes on, and only its copy counts",
    "pipeline: every reconcile can be interrupted and repeated with the same outcome",
    "pipeline: a lost API response does not change the outcome",
)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "how"),
    [
        pytest.param(
            story, how, id=f"{story}, {how}", marks=[] if (story, how) in DEFAULT else every_second(row + column)
        )
        for row, story in enumerate(STORIES)
        for column, how in enumerate((AFTER, LOST))
    ],
)
async def test_interruption_loses_no_debt(name: str, how: str, sweep: Sweep) -> None:
    story = STORIES[name]
    golden, writes, marks = await _ending_of(story)
    _check(golden, golden, "undisturbed")
    first = marks[0] + 1
    last = min(marks[1] if len(marks) > 1 else len(writes), marks[0] + story.most)
    for write in sweep.points(first, last, row=list(STORIES).index(name)):
        interruption = Interruption(lose_at=write) if how == LOST else Interruption(die_at=write, after=True)
        ending, _, _ = await _ending_of(story, interruption)
        _check(ending, golden, f"{how} write {write} of {last}: {writes[write - 1]}")
