from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.api.condition_model import Condition
from upgrade_manager.api.display import (
    DisplayState,
    FailureReason,
    display_of,
    failure_reason,
    readiness_of,
    where_it_failed,
)
from upgrade_manager.api.phases import FAILED, PHASE_VALUES


def condition(type_: str, reason: str = "R", message: str = "", *, status: str = "True") -> dict[str, Any]:
    """Return a raw condition."""
    return {"type": type_, "status": status, "reason": reason, "message": message}


def timestamps(*phases: str) -> list[dict[str, str]]:
    """Return the records of these phase values."""
    return [{"phase": phase} for phase in phases]


PROGRESS = condition("Progressing", "NodeUpgrading", "waiting for Rancher")
STALLED = condition("Stalled", "DrainFailing", "PodDisruptionBudget shop/db: it keeps Pod db-0")
BLOCKED = condition("Available", "ConcurrentUpgradeBlocked", "UpgradePlan a was in progress", status="False")
FAILURE = condition("Degraded", "UpgradeFailed", "no space left on device")
PAUSED = condition("Paused", "PausedByUser", "Paused by ada before node-2")
FREE = condition("Available", "Executable", "Upgrading to v1.8.0")
#: A plan in the queue, and a failed one that is resumed and waits.
QUEUED = {"queuedSince": "2026-01-01T00:00:00Z", "conditions": [BLOCKED]}
RESUMED = {**QUEUED, "currentPhase": "Failed", "phaseTransitionTimestamps": timestamps("NodeUpgrading", "Failed")}
#: A failed one that is resumed and paused.
HELD = {**RESUMED, "queuedSince": None, "conditions": [condition("Available", "Waiting", "paused"), PAUSED]}
OVER = {**RESUMED, "conditions": [condition("Progressing", "Refused", status="False"), FAILURE]}


@pytest.mark.parametrize(
    ("status", "state", "message"),
    [
        pytest.param({}, "Pending", "", id="new"),
        pytest.param({"conditions": [condition("Available", "Waiting", "for a")]}, "Pending", "for a", id="waiting"),
        pytest.param(QUEUED, "Queued", "UpgradePlan a was in progress", id="queued"),
        pytest.param(RESUMED, "Queued", "UpgradePlan a was in progress", id="queued-resumed"),
        pytest.param(OVER, "Failed: Refused", "no space left on device", id="failed-after-the-queue"),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [PROGRESS, PAUSED]},
            "Paused",
            "Paused by ada before node-2",
            id="paused",
        ),
        pytest.param(HELD, "Paused", "Paused by ada before node-2", id="paused-attempt"),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [PROGRESS, {**PAUSED, "status": "False"}]},
            "Running",
            "waiting for Rancher",
            id="continued",
        ),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [PROGRESS, PAUSED, STALLED]},
            "Stalled: DrainFailing",
            "PodDisruptionBudget shop/db: it keeps Pod db-0",
            id="stalled-in-a-pause",
        ),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [PROGRESS]}, "Running", "waiting for Rancher", id="running"
        ),
        pytest.param({"currentPhase": "Later", "conditions": [PROGRESS]}, "Running", "waiting for Rancher", id="later"),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [PROGRESS, STALLED]},
            "Stalled: DrainFailing",
            "PodDisruptionBudget shop/db: it keeps Pod db-0",
            id="stalled",
        ),
        pytest.param({"currentPhase": "CleaningUp"}, "CleaningUp", "", id="image-cleanup"),
        pytest.param({"currentPhase": "Succeeded", "cleanupPending": True}, "CleaningUp", "", id="removal"),
        pytest.param(
            {"currentPhase": "Succeeded", "conditions": [condition("Progressing", "Succeeded", "Upgraded")]},
            "Succeeded",
            "Upgraded",
            id="succeeded",
        ),
        pytest.param(
            {
                "currentPhase": "Failed",
                "cleanupPending": True,
                "conditions": [FAILURE, STALLED],
                "phaseTransitionTimestamps": timestamps("ImagePreloading", "Failed"),
            },
            "Failed: PreloadFailed",
            "no space left on device",
            id="failed",
        ),
    ],
)
def test_state(status: dict[str, Any], state: str, message: str) -> None:
    shown = display_of(status, is_deleting=False)
    assert (shown["state"], shown.get("message", "")) == (state, message)
    known = DisplayState(state.partition(":")[0])
    assert (shown["transitioning"], shown["error"]) == (known.transitioning, known.error)


def test_deletion_comes_before_any_other_state() -> None:
    assert display_of({"currentPhase": "Failed"}, is_deleting=True)["state"] == "Deleting"


@pytest.mark.rule("api: display has the state, transitioning and error that wrangler reads")
@pytest.mark.parametrize(
    ("state", "transitioning", "error"),
    [
        (DisplayState.PENDING, True, False),
        (DisplayState.QUEUED, True, False),
        (DisplayState.RUNNING, True, False),
        (DisplayState.PAUSED, True, False),
        (DisplayState.STALLED, True, False),
        (DisplayState.CLEANING_UP, True, False),
        (DisplayState.SUCCEEDED, False, False),
        (DisplayState.FAILED, False, True),
        (DisplayState.DELETING, True, False),
    ],
)
def test_what_wrangler_reads(state: DisplayState, *, transitioning: bool, error: bool) -> None:
    assert (state.transitioning, state.error) == (transitioning, error)


UNSEEN = ("True", "Pending", "Waiting for the upgrade manager")
RUNNING = ("True", "NodeUpgrading", "waiting for Rancher")
REASONS = timestamps("NodeUpgrading", "Failed")


@pytest.mark.rule(
    "api: Reconciling is absent after the end",
    "api: Ready is Unknown while the plan runs, True only if it has succeeded, and False if it has failed",
    "api: a failed plan is Stalled (UpgradeFailed)",
)
@pytest.mark.parametrize(
    ("status", "reconciling", "ready", "stalled"),
    [
        pytest.param({}, UNSEEN, ("Unknown", "Pending", ""), (), id="new"),
        pytest.param(
            QUEUED,
            ("True", "Queued", BLOCKED["message"]),
            ("Unknown", "Queued", BLOCKED["message"]),
            (),
            id="queued",
        ),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [FREE, PROGRESS]},
            RUNNING,
            ("Unknown", "NodeUpgrading", FREE["message"]),
            (),
            id="running",
        ),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [FREE, PROGRESS, STALLED]},
            ("True", "NodeUpgrading", STALLED["message"]),
            ("Unknown", "NodeUpgrading", FREE["message"]),
            (),
            id="stalled",
        ),
        pytest.param(
            {"currentPhase": "NodeUpgrading", "conditions": [FREE, PROGRESS, PAUSED]},
            ("True", "NodeUpgrading", PAUSED["message"]),
            ("Unknown", "NodeUpgrading", FREE["message"]),
            (),
            id="paused",
        ),
        pytest.param(
            HELD, ("True", "Paused", PAUSED["message"]), ("Unknown", "Paused", "paused"), (), id="paused-attempt"
        ),
        pytest.param(
            {"currentPhase": "Succeeded", "cleanupPending": True, "conditions": [STALLED]},
            ("True", "CleaningUp", STALLED["message"]),
            ("Unknown", "CleaningUp", ""),
            (),
            id="removal-refused",
        ),
        pytest.param(
            {"currentPhase": "Succeeded", "conditions": [condition("Progressing", "Succeeded", "Upgraded")]},
            None,
            ("True", "Succeeded", "Upgraded"),
            (),
            id="succeeded",
        ),
        pytest.param(
            {"currentPhase": "Failed", "cleanupPending": True, "conditions": [FAILURE, STALLED],
             "phaseTransitionTimestamps": REASONS},
            None,
            ("False", "NodeUpgradeFailed", FAILURE["message"]),
            ("True", "UpgradeFailed", FAILURE["message"]),
            id="failed",
        ),
    ],
)  # fmt: skip
def test_conditions_that_other_tools_read(
    status: dict[str, Any],
    reconciling: tuple[str, ...] | None,
    ready: tuple[str, ...],
    stalled: tuple[str, ...],
) -> None:
    """An empty `stalled` means that the blockers decide."""
    expected = {"Reconciling": reconciling, "Ready": ready} | ({"Stalled": stalled} if stalled else {})
    assert {type_: _read(one) for type_, one in readiness_of(status).items()} == expected


def _read(found: Condition | None) -> tuple[str, str, str] | None:
    return None if found is None else (found.status, found.reason, found.message)


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ("Initializing", FailureReason.REFUSED),
        ("Initialized", FailureReason.REFUSED),
        ("ISODownloading", FailureReason.IMPORT_FAILED),
        ("ISODownloaded", FailureReason.IMPORT_FAILED),
        ("RepoCreating", FailureReason.IMPORT_FAILED),
        ("RepoCreated", FailureReason.IMPORT_FAILED),
        ("MetadataPopulating", FailureReason.IMPORT_FAILED),
        ("MetadataPopulated", FailureReason.NOT_ELIGIBLE),
        ("ImagePreloading", FailureReason.PRELOAD_FAILED),
        ("ImagePreloaded", FailureReason.CLUSTER_UPGRADE_FAILED),
        ("ClusterUpgrading", FailureReason.CLUSTER_UPGRADE_FAILED),
        ("ClusterUpgraded", FailureReason.NODE_UPGRADE_FAILED),
        ("NodeUpgrading", FailureReason.NODE_UPGRADE_FAILED),
        ("NodeUpgraded", FailureReason.NODE_UPGRADE_FAILED),
        ("CleaningUp", FailureReason.NODE_UPGRADE_FAILED),
        ("CleanedUp", FailureReason.NODE_UPGRADE_FAILED),
    ],
)
def test_reason_of_a_failure(last: str, reason: FailureReason) -> None:
    recorded = [*PHASE_VALUES[: PHASE_VALUES.index(last) + 1], FAILED]
    assert failure_reason(recorded) is reason


def test_reason_of_a_failure_without_records() -> None:
    assert failure_reason([FAILED]) is FailureReason.REFUSED


@pytest.mark.parametrize(
    ("last", "nodes", "text"),
    [
        ("Initializing", {}, "Failed in Initialize: this plan has upgraded neither components nor nodes"),
        ("MetadataPopulated", {}, "Failed in ImagePreload: this plan has upgraded neither components nor nodes"),
        (
            "ClusterUpgrading",
            {"a": {"state": "ImagePreloaded"}},
            "Failed in ClusterUpgrade: this plan has upgraded no node",
        ),
        (
            "NodeUpgrading",
            {"a": {"state": "PostDrained"}, "b": {"state": "PreDrainFailed"}},
            "Failed in NodeUpgrade: 1 of 2 nodes upgraded",
        ),
        ("ClusterUpgraded", {}, "Failed in NodeUpgrade: 0 of 0 nodes upgraded"),
        ("CleanedUp", {"a": {"state": "PostDrained"}}, "Failed in ImageCleanup: 1 of 1 nodes upgraded"),
    ],
)
def test_how_far_a_failed_upgrade_came(last: str, nodes: dict[str, Any], text: str) -> None:
    phases = [*PHASE_VALUES[: PHASE_VALUES.index(last) + 1], FAILED]
    status = {"phaseTransitionTimestamps": timestamps(*phases), "nodeUpgradeStatuses": nodes}
    assert where_it_failed(status) == text


@pytest.mark.parametrize(
    ("nodes", "shown"),
    [
        ({}, None),
        ({"a": {"state": "ImagePreloaded"}, "b": None}, "0/2"),
        ({"a": {"state": "PostDrained"}, "b": {"state": "PreDraining"}, "c": {"state": "Later"}}, "1/3"),
        ({"a": {"state": "ImageCleaned"}, "b": {"state": "PostDrainFailed"}}, "1/2"),
    ],
)
def test_nodes_are_counted(nodes: dict[str, Any], shown: str | None) -> None:
    assert display_of({"nodeUpgradeStatuses": nodes}, is_deleting=False).get("nodes") == shown


def test_message_is_bounded() -> None:
    status = {"currentPhase": "NodeUpgrading", "conditions": [condition("Progressing", message="x" * 5000)]}
    assert len(display_of(status, is_deleting=False)["message"]) == 1000
