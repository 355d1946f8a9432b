from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.status import UpgradePlanStatus, node_entry, record_phase

NOW = datetime(2025, 11, 21, 9, tzinfo=UTC)
REACHED = {"phase": "Initializing", "phaseTransitionTimestamp": "2025-11-21T09:00:00Z"}


def test_a_status_is_read_by_its_names_on_the_wire() -> None:
    status = UpgradePlanStatus.read(
        {
            "currentPhase": "NodeUpgrading",
            "isoImageID": "images/iso",
            "nodeUpgradeStatuses": {"node1": {"state": "PreDraining", "reason": "R", "message": "M"}},
            "phaseTransitionTimestamps": [REACHED],
            "previousVersion": "v1.7.1",
            "provisionGeneration": 5,
            "releaseMetadata": {"harvester": "v1.8.0", "minUpgradableVersion": "v1.7.0"},
            "singleNode": "node1",
            "version": {"isoURL": "https://example.org/iso", "isoChecksum": "00"},
        }
    )
    assert status.iso_image == ("images", "iso")
    assert status.provision_generation == 5
    assert status.release_metadata.min_upgradable_version == "v1.7.0"
    assert (status.version.iso_url, status.version.iso_checksum) == ("https://example.org/iso", "00")
    assert status.node_state("node1") == "PreDraining"
    assert status.node_state("node2") == ""
    assert status.reached_at("Initializing") == NOW
    assert status.reached_at("Initialized") is None


def test_a_status_may_be_empty() -> None:
    status = UpgradePlanStatus.read(None)
    assert status.iso_image is None
    assert status.provision_generation is None
    assert status.reached_at("Initializing") is None


def test_one_odd_entry_does_not_hide_the_others() -> None:
    status = UpgradePlanStatus.read(
        {
            "phaseTransitionTimestamps": ["odd", REACHED],
            "nodeUpgradeStatuses": {"node1": 3, "node2": {"state": "UpgradePaused"}},
            "conditions": [None, {"type": "Degraded", "status": "True"}],
        }
    )
    assert status.reached_at("Initializing") == NOW
    assert status.node_state("node1") == ""
    assert status.node_state("node2") == "UpgradePaused"
    assert [condition.type for condition in status.conditions] == ["Degraded"]


@pytest.mark.rule(
    "api: an entry has a phase and the time at which it was reached",
    "api: times are RFC 3339, UTC, in whole seconds",
)
@pytest.mark.parametrize("timestamps", [None, "odd", [], {}], ids=repr)
def test_the_first_phase_begins_the_record(timestamps: object) -> None:
    assert record_phase(timestamps, "Initializing", NOW) == [REACHED]


@pytest.mark.rule("api: phaseTransitionTimestamps are append-only")
def test_phases_are_appended_and_nothing_is_taken_off() -> None:
    odd: list[Any] = ["odd", {**REACHED, "by": "someone"}]
    assert record_phase(odd, "Initialized", NOW) == [
        *odd,
        {"phase": "Initialized", "phaseTransitionTimestamp": "2025-11-21T09:00:00Z"},
    ]
    assert len(odd) == 2


@pytest.mark.rule("api: each phase value is recorded once")
def test_a_phase_is_recorded_once() -> None:
    assert record_phase([REACHED], "Initializing", NOW.replace(hour=10)) == [REACHED]


@pytest.mark.rule(
    "api: nodeUpgradeStatuses map a node to state and optional reason and message",
    "api: within a group the first state is kept",
)
@pytest.mark.parametrize(
    ("old", "state", "reason", "message", "expected"),
    [
        pytest.param(None, NodeState.PRE_DRAINING, "", "", {"state": "PreDraining"}, id="the first state"),
        pytest.param({"state": 3}, NodeState.PRE_DRAINING, "", "", {"state": "PreDraining"}, id="no readable state"),
        pytest.param(
            {"state": "PreDraining", "message": "attempt 1 failed", "zone": "a"},
            NodeState.PRE_DRAINED,
            "",
            "",
            {"state": "PreDrained", "zone": "a"},
            id="forward: the old message goes, unknown fields stay",
        ),
        pytest.param(
            {"state": "PreDraining", "message": "attempt 1 failed"},
            NodeState.PRE_DRAINING,
            "JobRetrying",
            "attempt 2 failed",
            {"state": "PreDraining", "reason": "JobRetrying", "message": "attempt 2 failed"},
            id="the same state: a new message",
        ),
        pytest.param(
            {"state": "PreDrainFailed", "message": "cause"},
            NodeState.PRE_DRAINED,
            "",
            "late",
            {"state": "PreDrainFailed", "message": "cause"},
            id="an alternative comes too late",
        ),
        pytest.param(
            {"state": "FirmwareUpdating"},
            NodeState.POST_DRAINED,
            "",
            "m",
            {"state": "FirmwareUpdating"},
            id="an unknown state stays",
        ),
    ],
)
def test_observations_are_merged_into_a_nodes_entry(
    old: object, state: NodeState, reason: str, message: str, expected: dict[str, Any]
) -> None:
    assert node_entry(old, state, reason=reason, message=message) == expected


def test_the_old_entry_is_left_alone() -> None:
    old = {"state": "PreDraining"}
    node_entry(old, NodeState.PRE_DRAINED)
    assert old == {"state": "PreDraining"}
