from __future__ import annotations

import pytest

from upgrade_manager.api.phases import (
    FAILED,
    PHASE_VALUES,
    PHASES,
    SUCCEEDED,
    TERMINAL,
    PhaseName,
    is_terminal,
    phase_of,
    position,
)

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
    "api: the phases have a fixed order",
    "api: a successful run records 17 timestamps in order",
)
def test_the_phases_stand_in_the_order_of_the_run() -> None:
    assert [phase.value for phase in PHASES] == [row[0] for row in TABLE]
    assert list(PHASE_VALUES) == [value for row in TABLE for value in row[1:3]]
    assert len(PHASE_VALUES) + 1 == 17


def test_each_phase_knows_the_next() -> None:
    assert [phase.next for phase in PHASES] == [*PHASES[1:], None]


@pytest.mark.parametrize("value", [SUCCEEDED, FAILED, "", "FirmwareUpgrading"])
def test_other_values_belong_to_no_phase(value: str) -> None:
    assert phase_of(value) is None


@pytest.mark.rule("api: Succeeded and Failed are terminal")
def test_two_values_are_terminal() -> None:
    assert {SUCCEEDED, FAILED} == TERMINAL
    assert is_terminal(SUCCEEDED)
    assert is_terminal(FAILED)
    assert not any(is_terminal(value) for value in (*PHASE_VALUES, "", "FirmwareUpgrading"))


def test_positions_rise_with_the_run() -> None:
    assert [position(value) for value in (*PHASE_VALUES, SUCCEEDED)] == list(range(17))


@pytest.mark.parametrize("value", ["", FAILED, "FirmwareUpgrading"])
def test_values_outside_the_order_have_no_position(value: str) -> None:
    assert position(value) == -1
