from __future__ import annotations

import pytest

from upgrade_manager.api.keys import JobType
from upgrade_manager.api.phases import (
    FAILED,
    PHASE_SPECS,
    PHASE_VALUES,
    PHASES,
    SUCCEEDED,
    TERMINAL,
    PhaseName,
    phase_of,
    skipped_phases,
)
from upgrade_manager.nodes.expected_times import USUAL

TABLE = [
    ("Initialize", "Initializing", "Initialized"),
    ("ISODownload", "ISODownloading", "ISODownloaded"),
    ("RepoCreate", "RepoCreating", "RepoCreated"),
    ("MetadataPopulate", "MetadataPopulating", "MetadataPopulated"),
    ("ImagePreload", "ImagePreloading", "ImagePreloaded"),
    ("ClusterUpgrade", "ClusterUpgrading", "ClusterUpgraded"),
    ("NodeUpgrade", "NodeUpgrading", "NodeUpgraded"),
    ("ImageCleanup", "CleaningUp", "CleanedUp"),
]


@pytest.mark.rule("api: each phase has an active and a completed value")
@pytest.mark.parametrize(("name", "active", "completed"), TABLE, ids=[row[0] for row in TABLE])
def test_each_phase_has_two_values(name: str, active: str, completed: str) -> None:
    phase = PhaseName(name)
    assert phase.value == name
    assert (phase.active, phase.completed) == (active, completed)
    assert phase_of(active) is phase
    assert phase_of(completed) is phase


@pytest.mark.rule(
    "api: the phases have a fixed order", "api: a successful run records a timestamp for each value in order"
)
def test_phases_are_in_order() -> None:
    assert [phase.value for phase in PHASES] == [row[0] for row in TABLE]
    assert list(PHASE_VALUES) == [value for row in TABLE for value in row[1:3]]


def test_shares_of_all_phases_leave_one_percent_for_the_end() -> None:
    weights = {str(spec.name): spec.weight for spec in PHASE_SPECS}
    assert sum(weights.values()) == pytest.approx(0.99), f"take a new phase's weight from others: {weights}"


def test_node_upgrade_may_take_as_long_as_its_slowest_job() -> None:
    assert PhaseName.NODE_UPGRADE.spec.usual == max(USUAL[job_type] for job_type in JobType)


@pytest.mark.parametrize(
    ("recorded", "skipped"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(PHASE_VALUES, [], id="all"),
        pytest.param(["Initializing", "Initialized", "RepoCreating"], ["ISODownload"], id="a phase in the middle"),
        pytest.param(["Initializing", "ISODownloading", "RepoCreating"], [], id="only the ends are lost"),
        pytest.param([*PHASE_VALUES[:-2], FAILED], [], id="failed before the last one"),
        pytest.param([*PHASE_VALUES[:-2], SUCCEEDED], ["ImageCleanup"], id="succeeded without the last one"),
        pytest.param(["FirmwareUpgrading", None], [], id="values of another version"),
    ],
)
def test_phase_before_a_recorded_later_one_was_skipped(recorded: list[str], skipped: list[str]) -> None:
    assert skipped_phases(recorded) == set(skipped)


@pytest.mark.rule("api: Succeeded and Failed are terminal")
def test_terminal_and_unknown_values_have_no_phase() -> None:
    assert {SUCCEEDED, FAILED} == TERMINAL
    assert [phase_of(value) for value in (SUCCEEDED, FAILED, "", "FirmwareUpgrading")] == [None] * 4
