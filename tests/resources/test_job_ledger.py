"""The ConfigMap in which Jobs record what they change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from upgrade_manager.kube import objects
from upgrade_manager.resources.job_ledger import data_of, entries_of, ledger_map, stopped_vm
from upgrade_manager.resources.owner import Owner

SINCE = "2026-01-01T00:00:00Z"
VM = stopped_vm({"metadata": {"namespace": "default", "name": "db"}}, node="n1", since=SINCE)


def test_stopped_vm_has_node_and_time() -> None:
    assert VM == {
        "id": "StoppedVM.default.db",
        "kind": "StoppedVM",
        "object": "VirtualMachine default/db",
        "node": "n1",
        "since": SINCE,
    }


def test_map_belongs_to_the_plan_and_keeps_its_entries() -> None:
    owner = Owner(name="up", uid="u")
    found = ledger_map(owner, [VM])
    assert (objects.name(found), objects.namespace(found)) == ("up-ledger", "harvester-system")
    assert owner.owns(found)
    assert entries_of(found) == [VM]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(7, id="no text"),
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param("[" * 10_000, id="nested"),
        pytest.param(json.dumps(VM | {"kind": "Setting"}), id="a setting"),
        pytest.param(json.dumps(VM | {"object": 1}), id="object of another type"),
        pytest.param(json.dumps({"kind": "StoppedVM"}), id="without object and time"),
    ],
)
def test_what_no_job_records_is_ignored(text: Any) -> None:
    assert entries_of({"data": {"x": text}}) == []


def test_key_is_the_id_and_unknown_fields_are_dropped() -> None:
    entry = {**VM, "applied": False, "original": None, "more": 1}
    ((_, text),) = data_of([entry]).items()
    expected = {key: value for key, value in entry.items() if key not in {"original", "more"}} | {"id": "key"}
    assert entries_of({"data": {"key": text}}) == [expected]
