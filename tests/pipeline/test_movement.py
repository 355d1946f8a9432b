from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.managers.healthy_run import exported, healthy_run
from tests.support.managers.upgrade import started
from upgrade_manager.api.phases import PHASE_VALUES
from upgrade_manager.blockers.wait import JobWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.pipeline import movement
from upgrade_manager.pipeline.movement import PlanProgress, ProgressTracker, is_stalled
from upgrade_manager.pipeline.phases import multus_job

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
STALLED = {"conditions": [{"type": "Stalled", "status": "True"}]}
ALL_PAUSED = {"nodeUpgradeStatuses": {"a": {"state": "UpgradePaused"}, "b": {"state": "PostDrained"}}}
ONE_PAUSED = {"nodeUpgradeStatuses": {"a": {"state": "UpgradePaused"}, "b": {"state": "PostDraining"}}}


def paused(reason: str, where: str = "") -> dict[str, Any]:
    holds = {"holds": where} if where else {}
    return {"conditions": [{"type": "Paused", "status": "True", "reason": reason}], **holds}


def minute(number: float) -> datetime:
    return EPOCH + timedelta(minutes=number)


def plan(phase: str = "NodeUpgrading", *nodes: str, **status: Any) -> dict[str, Any]:
    """Return a plan that reached each phase value a minute after the one before."""
    values = PHASE_VALUES[: PHASE_VALUES.index(phase) + 1] if phase else ()
    entries = [
        {"phase": value, "phaseTransitionTimestamp": f"{minute(number):%Y-%m-%dT%H:%M:%SZ}"}
        for number, value in enumerate(values)
    ]
    states = {f"n{number}": {"state": state} for number, state in enumerate(nodes)}
    found = {"currentPhase": phase, "phaseTransitionTimestamps": entries, "nodeUpgradeStatuses": states, **status}
    return {"metadata": {"name": "up", "uid": "u"}, "status": found}


def wait(progressed: float, usual: float = 60.0) -> JobWait:
    since = minute(progressed)
    return JobWait(namespace="ns", name="j", expected=usual, since=since, stepped=since, pods="")


def progress(found: Object, tracker: ProgressTracker, *, least: float = 0.0) -> PlanProgress:
    return PlanProgress.of(found, tracker.of(found), least=least)


def test_ratio_stays_when_nodes_join() -> None:
    before = progress(plan("NodeUpgrading", "PostDrained"), ProgressTracker()).ratio
    joined = plan("NodeUpgrading", "PostDrained", "PreDraining")
    assert progress(joined, ProgressTracker(), least=before).ratio == before
    assert progress(joined, ProgressTracker()).ratio < before


def test_last_progress_is_the_latest_time() -> None:
    tracker = ProgressTracker()
    assert progress(plan(""), tracker).moved is None
    reached = minute(PHASE_VALUES.index("NodeUpgrading"))
    assert progress(plan("NodeUpgrading"), tracker).moved == reached
    tracker.waiting(plan(), [wait(20), wait(15)])
    assert progress(plan(), tracker).moved == minute(20)
    tracker.moved(plan(), minute(31))
    tracker.waiting(plan(), [wait(20, usual=7200.0)])
    assert (progress(plan(), tracker).moved, progress(plan(), tracker).usual) == (minute(31), 7200.0)
    tracker.waiting(plan(), [])
    assert progress(plan(), tracker).usual == 0
    tracker.keep([])
    assert progress(plan(), tracker).moved == reached


@pytest.mark.parametrize(
    ("found", "usual", "minutes", "stalled"),
    [
        pytest.param(plan("NodeUpgrading"), 0, 90, False, id="as long as its slowest step usually takes"),
        pytest.param(plan("NodeUpgrading"), 0, 91, True, id="longer"),
        pytest.param(plan("NodeUpgrading"), 7200, 91, False, id="nodes of this plan take longer"),
        pytest.param(plan("NodeUpgrading"), 60, 91, True, id="a short wait does not count"),
        pytest.param(plan("RepoCreating"), 0, 11, True, id="a phase that is short"),
        pytest.param(plan("NodeUpgrading", **STALLED), 0, 1, True, id="the condition Stalled"),
        pytest.param(plan("NodeUpgrading", **ALL_PAUSED), 0, 600, False, id="a user has paused the nodes"),
        pytest.param(plan("NodeUpgrading", **ONE_PAUSED), 0, 600, True, id="another node is under way"),
        pytest.param(plan("NodeUpgrading", **paused("Paused", "before a")), 0, 600, False, id="the plan is paused"),
        pytest.param(plan("NodeUpgrading", **paused("PauseAfter", "before a")), 0, 600, False, id="a canary is done"),
        pytest.param(plan("NodeUpgrading", **paused("Pausing")), 0, 600, True, id="a node is stuck meanwhile"),
        pytest.param(plan("NodeUpgrading", **paused("PauseAfter")), 0, 600, True, id="a node is stuck after a canary"),
        pytest.param(plan(""), 0, 600, False, id="not accepted"),
    ],
)
def test_stalled_without_progress_for_its_expected_time(
    found: dict[str, Any], usual: float, minutes: float, *, stalled: bool
) -> None:
    observed = PlanProgress(ratio=0.5, moved=EPOCH, usual=usual)
    assert is_stalled(found, observed, minute(minutes)) is stalled


@pytest.mark.full
@pytest.mark.rule("metrics: the progress ratio never falls within an attempt; a new one begins with what is done")
def test_exported_progress_grows_through_an_upgrade() -> None:
    found = healthy_run().exported
    assert found.ratios == sorted(found.ratios)
    assert len(set(found.ratios)) > 15
    assert found.moved == sorted(found.moved)
    # After the last node, RKE2 gets some time to upgrade a chart.
    assert max(after - before for before, after in pairwise(found.moved)) < 5 + multus_job.SETTLE
    assert found.stalled == {0.0}


@pytest.mark.full
async def test_last_progress_survives_a_restart() -> None:
    async with Simulation("three-nodes") as simulation, started(simulation) as stage:
        await stage.until_node("PostDraining")
        began = objects.status(await stage.plan())["phaseTransitionTimestamps"][-1]["phaseTransitionTimestamp"]
        async with stage.life(seed="successor") as life:
            await asyncio.sleep(0.2)
            life.metrics.refresh()
            (seconds,) = exported(life, "last_progress_timestamp_seconds")
    assert seconds > datetime.fromisoformat(began).timestamp()


def test_waits_are_read_without_a_scrape_before_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(movement, "MAX_UNREAD", 2)
    tracker = ProgressTracker()
    for number in (7, 9, 8, 6):
        tracker.waiting(plan(), [wait(number)])
    assert len(tracker._plans["u"].unread) <= 2
    assert tracker.of(plan()).moved == minute(9)
