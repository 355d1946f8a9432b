"""The view as a document."""

from __future__ import annotations

import json

import yaml

from tests.support.managers.displayed import NOW, event, plan, running_view
from upgrade_manager.api.phases import PHASES, PhaseName
from upgrade_manager.display.document import document, to_json, to_yaml
from upgrade_manager.display.view import build


def test_json_and_yaml_are_the_same_document() -> None:
    view = running_view()
    assert json.loads(to_json(view)) == yaml.safe_load(to_yaml(view)) == document(view)


def test_documents_of_yaml_can_follow_one_another() -> None:
    assert len(list(yaml.safe_load_all(to_yaml(running_view()) * 2))) == 2


NAMES = [
    *("plan", "state", "status", "phase", "previousVersion", "targetVersion", "toolkitImage", "onMigrationFailure"),
    *("checksums", "createdBy", "started", "ended", "elapsedSeconds", "attempt", "attempts", "estimatedCompletion"),
    *("progress", "phases"),
    *("nodes", "waiting", "lastError", "cause", "deleting", "cleaningUp", "nextSteps", "blockers", "warnings"),
    "leader",
]


def test_names_and_values_are_those_of_kubernetes() -> None:
    found = document(running_view())
    assert [*found] == NAMES
    assert (found["started"], found["ended"], found["elapsedSeconds"]) == ("2030-01-01T12:00:00Z", None, 4320.0)
    assert [phase["name"] for phase in found["phases"]] == list(PHASES)
    assert found["phases"][PHASES.index(PhaseName.NODE_UPGRADE)] == {
        "name": "NodeUpgrade",
        "state": "active",
        "started": "2030-01-01T12:24:00Z",
        "ended": None,
        "seconds": 2880.0,
    }
    assert found["nodes"][1] == {
        "name": "node-1",
        "state": "WaitingReboot",
        "since": "2030-01-01T12:54:00Z",
        "reason": "NotReady",
        "message": "expects Harvester v1.8.0",
    }
    assert found["warnings"][0]["count"] == 3
    assert found["blockers"][0]["since"] == "2030-01-01T13:00:00Z"


def test_plan_without_status_has_a_document() -> None:
    found = document(build(plan(), [event("A", "b", lastTimestamp=None)], now=NOW))
    assert (found["state"], found["started"], found["nodes"]) == ("Pending", None, [])
