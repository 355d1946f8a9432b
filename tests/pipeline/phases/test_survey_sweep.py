"""The manager is interrupted at every write of the survey, and its plan is deleted there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.phases.test_iso_checksums_runs import OWN
from tests.pipeline.phases.test_survey_runs import SKIPPED, found
from tests.support.cluster.cluster_state import PAYLOAD, created_objects, overridden_settings
from tests.support.cluster.simulate import RepairableScenario
from tests.support.cluster.survey_world import FULL, NO_STATE_PARTITION
from tests.support.managers.manager_restarts import UNDISTURBED, Interruption, Restarts, restarted
from tests.support.managers.sweep import Goldens, Sweep, cases
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, phases_of
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS

#: Virtual seconds after which an event without a response is sent again.
EVENT_RETRY = 15.0
#: Seconds between two polls of the manager's writes.
LOOK = 0.05
FINDINGS = {"faults": [found("node-1", NO_STATE_PARTITION), found("node-2", NO_STATE_PARTITION, FULL)]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """An upgrade with a survey."""

    spec: dict[str, Any]
    options: RunOptions = OWN
    changes: dict[str, Any] = field(default_factory=dict)
    #: The phase value that follows.
    last: str = "ClusterUpgrading"


STORIES = {
    "all is well": Story(spec=SKIPPED),
    "after a preload": Story(spec=BY_VERSION),
    "findings": Story(spec=SKIPPED, changes=FINDINGS, last="Failed"),
    "forced": Story(spec={**SKIPPED, "force": True}, changes=FINDINGS),
    "Harvester's toolkit": Story(spec=SKIPPED, options=RunOptions()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The end of a story; equal for runs that end alike."""

    phases: list[str]
    survey: dict[str, Any]
    message: str
    warnings: set[tuple[str, str]]
    created: list[str]
    #: The labels and annotations that the upgrade leaves on nodes.
    left: list[Any]
    #: The writes of the first manager, and their numbers at the begin and the end of the phase.
    writes: list[str] = field(compare=False)
    marks: tuple[int, int] = field(compare=False)


async def run(story: Story, interruption: Interruption = UNDISTURBED) -> Run:
    async with Simulation(RepairableScenario.of(**story.changes), scale=0) as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), options=story.options)
        async with restarted(stage, [interruption]) as managers:
            await stage.create_plan(story.spec)
            await stage.until_recorded("ImagePreloading")
            first = _writes(managers)
            await stage.until_plan(lambda plan: story.last in phases_of(plan), seconds=3600)
            last = _writes(managers)
            await stage.until_ended()
            await stage.settle()
            await asyncio.sleep(EVENT_RETRY + interruption.gap)
        plan = await stage.plan()
        kept = PAYLOAD if story.last == "Failed" else ()
        warnings = {one for one in await stage.warnings() if one[0] != "ReconcileError"}
        return Run(
            phases=phases_of(plan),
            survey=(objects.status(plan).get("survey") or {}).get("nodes") or {},
            message=objects.condition(plan, "Progressing")["message"].partition(" in ")[0],
            warnings=warnings,
            created=[title for title in await created_objects(simulation) if not title.startswith(kept)],
            left=(await overridden_settings(simulation))[3:5],
            writes=managers.lives[0].wire.writes,
            marks=(first, last),
        )


def _writes(managers: Restarts) -> int:
    return len(managers.lives[0].wire.writes)


GOLDEN: Goldens[str, Run] = Goldens(lambda name: run(STORIES[name]))


@pytest.mark.rule(
    "pipeline: every reconcile can be interrupted and repeated with the same outcome",
    "pipeline: a lost API response does not change the outcome",
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", cases(STORIES, default=["findings"]))
@pytest.mark.full
async def test_interrupted_survey_ends_alike(name: str, sweep: Sweep) -> None:
    story = STORIES[name]
    golden = await GOLDEN.of(name)
    assert (golden.created, golden.left) == ([], [[], []])
    interruptions: list[Callable[[int], Interruption]] = [
        lambda write: Interruption(die_at=write, after=True),
        lambda write: Interruption(die_at=write),
        lambda write: Interruption(lose_at=write),
        # The Jobs and their Pods have expired meanwhile.
        lambda write: Interruption(die_at=write, after=True, gap=1200.0),
    ]
    first, last = golden.marks
    points = list(product(range(first, last + 2), interruptions))
    for write, interruption in sweep.some(points, beginning=list(STORIES).index(name), stride=35):
        ending = await run(story, interruption(write))
        assert ending == golden, f"write {write} of {last}: {golden.writes[write - 1]}"


@pytest.mark.full
@pytest.mark.rule("pipeline: deletion in any phase runs the same cleanup and then removes the finalizer")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", cases(STORIES, default=["all is well"]))
async def test_deletion_during_the_survey_leaves_nothing(name: str, sweep: Sweep) -> None:
    story = STORIES[name]
    first, last = (await GOLDEN.of(name)).marks
    for number in sweep.some(range(first, last + 1), beginning=first, stride=12):
        async with Simulation(RepairableScenario.of(**story.changes)) as simulation:
            stage = replace(await UpgradeRun.set_up(simulation), options=story.options)
            async with stage.life() as life:
                await stage.create_plan(story.spec)
                while len(life.wire.writes) < number:  # noqa: ASYNC110  # virtual time
                    await asyncio.sleep(LOOK)
                await stage.client.delete(UPGRADE_PLANS, stage.name)
                await stage.until("deleted")
                await stage.settle()
            assert await created_objects(simulation) == [], number
            assert (await overridden_settings(simulation))[3:5] == [[], []], number
