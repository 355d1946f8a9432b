"""The manager is killed after every write of the other ends: a plan that is deleted, and one that fails, in each phase.

What stands in the cluster right after one write is what stands there right before the next, so one kill for each is
enough; the first one happens right after the deletion, or after the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.pipeline.test_deletion import until_recorded
from tests.pipeline.test_failures import SECOND, fault, ours, settings
from tests.support.curable import Curable
from tests.support.sweep import points
from tests.support.upgrade import BY_VERSION, Stage, phases_of
from upgrade_manager.api.phases import FAILED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.kinds import UPGRADE_PLANS

#: From the phases in which there is most to be undone.
DELETED_IN = ["ISODownloading", "RepoCreated", "ImagePreloading", "ClusterUpgrading", "NodeUpgrading", "CleaningUp"]
#: Writes between the verdict and the first removal: the record, what is put back, the note of it, and an event.
VERDICT = 7
#: Beside those of test_failures.py, which dies in its clean-up as well.
FAILING: dict[str, dict[str, Any]] = {
    "the ISO": {"image_import": {"attempts": 99, "message": "unexpected EOF"}},
    "eligibility": {"release": {"min_upgradable_version": "v1.7.5"}},
    "a node's pre-drain": fault("pre-drain", SECOND),
    "image cleanup": fault("image-cleanup", SECOND),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What an upgrade has left."""

    phases: list[str]
    ours: list[str]
    settings: list[Any]
    notes: dict[str, str]
    events: list[tuple[str, str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One upgrade up to such an end."""

    left: Left
    #: Writes of the first life before the deletion.
    before: int
    #: All of them.
    writes: list[str]
    settings: list[Any]


async def left(stage: Stage) -> Left:
    """Look at it."""
    found = [(event["reason"], event["message"], event["count"]) for event in await stage.events()]
    try:
        plan = await stage.plan()
    except NotFound:
        plan = {"metadata": {}}
    return Left(
        phases=phases_of(plan),
        ours=await ours(stage.simulation),
        settings=await settings(stage.simulation),
        notes=objects.annotations_of(plan),
        events=sorted(found),
    )


async def run(scenario: Curable, *, delete_in: str = "", kill: int = 0) -> Run:
    """An upgrade that is deleted in a phase or fails; its manager dies after so many writes of the end."""
    async with Simulation(scenario, scale=0) as simulation:
        was = await settings(simulation)
        stage = await Stage.set_up(simulation)
        end = "gone" if delete_in else FAILED
        async with stage.life(die_at=kill, after=True) as first:
            await stage.create_plan(BY_VERSION)
            before = 0
            if delete_in:
                await until_recorded(stage, delete_in)
                before = len(first.wire.writes)
                await simulation.client().delete(UPGRADE_PLANS, stage.name)
            await stage.until(end, died=first.wire.died)
            await stage.settle()
        if first.wire.died.is_set():
            async with stage.life(seed="successor"):
                await stage.until(end)
                await stage.settle()
        return Run(left=await left(stage), before=before, writes=first.wire.writes, settings=was)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("phase", DELETED_IN)
async def test_a_deletion_is_finished_by_whoever_comes_after(phase: str) -> None:
    scenario = Curable.of()
    golden = await run(scenario, delete_in=phase)
    assert (golden.left.ours, golden.left.settings) == ([], golden.settings)
    writes = len(golden.writes)
    for write in points(golden.before + 1, writes):
        ending = await run(scenario, delete_in=phase, kill=write)
        crash = f"killed after write {write} of {writes}"
        assert (ending.left.ours, ending.left.settings) == ([], golden.settings), crash
        assert [event for event in ending.left.events if event[0] == "ReconcileError"] == [], crash


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", FAILING)
async def test_a_failure_is_finished_by_whoever_comes_after(what: str) -> None:
    scenario = Curable.of(**FAILING[what])
    golden = await run(scenario)
    assert golden.left.settings == golden.settings
    writes = len(golden.writes)
    removal = next(number for number, write in enumerate(golden.writes, 1) if write.startswith("DELETE"))
    for write in points(max(1, removal - VERDICT), writes):
        ending = await run(scenario, kill=write)
        assert ending.left == golden.left, f"killed after write {write} of {writes}"
