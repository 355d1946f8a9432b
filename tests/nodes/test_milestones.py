from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.cluster.nodes import VIEW, job_state
from upgrade_manager.api.keys import JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.nodes.milestones import reached
from upgrade_manager.nodes.model import Decision

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NOW = EPOCH + timedelta(hours=10)


def minute(number: int) -> datetime:
    return EPOCH + timedelta(minutes=number)


def at(number: int) -> str:
    return f"{minute(number):%Y-%m-%dT%H:%M:%SZ}"


def job(begun: int, completed: int | None = None, **more: Any) -> JobState:
    """Return a Job with its times in minutes."""
    ended = {"progress": Progress.COMPLETE, "completed": at(completed)} if completed is not None else {}
    return job_state(**{"created": at(begun), "started": at(begun), **ended, **more})


PRE, POST, SINGLE = JobType.PRE_DRAIN, JobType.POST_DRAIN, JobType.SINGLE_NODE_UPGRADE
DRAINED = {PRE: job(0, 12)}
UPGRADED = {**DRAINED, POST: job(25, 45)}
SUSPENDED = job_state(created=at(0), suspended=True)
RESUMED = job(0, started=at(90), resumed=at(90))
DRAINING = ("NodeDraining", "draining begins", 0)
BEGUN = "the upgrade of its operating system begins"
UPGRADING = ("NodeUpgrading", f"{BEGUN}; it was drained, and its Kubernetes upgraded in 25 min 0 s", 25)
REBOOTS = "reboots; its operating system was upgraded in 20 min 0 s"
DONE = "upgraded in 51 min 0 s; its reboot took 6 min 0 s"


@pytest.mark.rule(
    "nodes: pauses, drains, upgrades, reboots and the end of each node are events with their durations",
    "nodes: the events of a node are derived from its Jobs and its condition, also after a restart",
)
@pytest.mark.parametrize(
    ("jobs", "recorded", "state", "ready", "expected"),
    [
        pytest.param({}, "ImagePreloaded", None, None, [], id="not reached"),
        pytest.param({PRE: job_state(created=at(0))}, "PreDraining", "PreDraining", None, [], id="Job not started"),
        pytest.param({PRE: job(0)}, "PreDraining", "PreDraining", None, [DRAINING], id="draining"),
        pytest.param({PRE: job(0, repeated=True)}, "PostDrained", None, None, [], id="drained again"),
        pytest.param(
            {PRE: SUSPENDED},
            "UpgradePaused",
            "UpgradePaused",
            None,
            [("NodePaused", "paused; remove it from spec.nodeUpgradeOption.pauseNodes to continue", 0)],
            id="paused",
        ),
        pytest.param({PRE: SUSPENDED}, "PreDraining", "PreDraining", None, [], id="suspended by a user"),
        pytest.param(
            {PRE: RESUMED},
            "PreDraining",
            "PreDraining",
            None,
            [
                ("NodePaused", "paused; remove it from spec.nodeUpgradeOption.pauseNodes to continue", 0),
                ("NodeResumed", "resumed after 1 h 30 min", 90),
                ("NodeDraining", "draining begins", 90),
            ],
            id="resumed",
        ),
        pytest.param(
            {**DRAINED, POST: job(25)}, "PostDraining", "PostDraining", None, [DRAINING, UPGRADING], id="upgrading"
        ),
        pytest.param(
            UPGRADED,
            "PostDraining",
            "WaitingReboot",
            None,
            [DRAINING, UPGRADING, ("NodeRebooting", REBOOTS, None)],
            id="rebooting since now",
        ),
        pytest.param(
            UPGRADED,
            "WaitingReboot",
            "WaitingReboot",
            None,
            [DRAINING, UPGRADING, ("NodeRebooting", REBOOTS, 45)],
            id="rebooting as recorded",
        ),
        pytest.param(
            UPGRADED,
            "WaitingReboot",
            "PostDrained",
            51,
            [DRAINING, UPGRADING, ("NodeRebooting", REBOOTS, 45), ("NodeUpgraded", DONE, None)],
            id="back now",
        ),
        pytest.param(
            UPGRADED,
            "PostDrained",
            "PostDrained",
            51,
            [DRAINING, UPGRADING, ("NodeRebooting", REBOOTS, 45), ("NodeUpgraded", DONE, 51)],
            id="done as recorded",
        ),
        pytest.param(
            UPGRADED,
            "PostDraining",
            "PostDrained",
            -60,
            [DRAINING, UPGRADING, ("NodeUpgraded", "upgraded in 45 min 0 s", None)],
            id="no reboot needed",
        ),
        pytest.param(
            {SINGLE: job(0, 20)},
            "WaitingReboot",
            "SingleNodeUpgraded",
            -60,
            [("NodeUpgrading", BEGUN, 0), ("NodeUpgraded", "upgraded in 10 h 0 min; its reboot took 9 h 40 min", None)],
            id="single node that was back before it counted as NotReady",
        ),
        pytest.param({}, "WaitingReboot", "PostDrained", 51, [("NodeUpgraded", "upgraded", None)], id="Jobs deleted"),
    ],
)
def test_milestones_follow_jobs_and_conditions(
    jobs: dict[JobType, JobState],
    recorded: str,
    state: str | None,
    ready: int | None,
    expected: list[tuple[str, str, int | None]],
) -> None:
    since = "" if ready is None else at(ready)
    view = replace(VIEW, state=NodeState(recorded), jobs=jobs, ready=ready is not None, ready_since=since)
    found = list(reached(view, Decision(state=NodeState(state) if state else None), now=NOW))
    assert [(one.reason, one.message.removeprefix("Node n1: "), one.at) for one in found] == [
        (reason, message, None if time is None else minute(time)) for reason, message, time in expected
    ]


PAUSED = ("NodePaused", "paused; remove it from spec.nodeUpgradeOption.pauseNodes to continue", 0)


@pytest.mark.rule("nodes: the events of a node are derived from its Jobs and its condition, also after a restart")
@pytest.mark.parametrize(
    ("old", "recorded", "state", "expected"),
    [
        pytest.param(UPGRADED, "PostDrained", None, [DRAINING, UPGRADING], id="upgraded node that is drained again"),
        pytest.param({PRE: SUSPENDED}, "UpgradePaused", None, [PAUSED], id="paused node whose Job is replaced"),
        pytest.param(
            {}, "UpgradePaused", "PreDraining", [("NodeResumed", "resumed", None)], id="resumed before its new Job"
        ),
        pytest.param({PRE: job(0, repeated=True)}, "PostDrained", None, [], id="drained a third time"),
    ],
)
def test_milestones_follow_jobs_of_earlier_requests(
    old: dict[JobType, JobState], recorded: str, state: str | None, expected: list[tuple[str, str, int | None]]
) -> None:
    view = replace(VIEW, state=NodeState(recorded), jobs={}, old_jobs=old, ready=False)
    found = list(reached(view, Decision(state=NodeState(state) if state else None), now=NOW))
    assert [(one.reason, one.message.removeprefix("Node n1: "), one.at) for one in found] == [
        (reason, message, None if time is None else minute(time)) for reason, message, time in expected
    ]


def test_lost_node_is_not_reported_as_upgraded() -> None:
    view = replace(VIEW, state=NodeState.POST_DRAINED, jobs=UPGRADED, ready=False, ready_since=at(99))
    found = reached(view, Decision(state=NodeState.POST_DRAINED, holds=True), now=NOW)
    assert [one.reason for one in found] == ["NodeDraining", "NodeUpgrading"]
