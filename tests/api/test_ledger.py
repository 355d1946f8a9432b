"""Entries of the ledger: their ids, their kinds, and the entries of version 0.1."""

from __future__ import annotations

import re
from typing import Any

import pytest

from upgrade_manager.api.ledger import (
    STRATEGY_FIELD,
    LedgerKind,
    entry_id,
    merged,
    new_entry,
    of_kind,
    owes,
    recorded_entries,
)

SINCE = "2026-01-01T00:00:00Z"
INTERVAL = {"object": "Setting longhorn-system/x", "field": "value", "original": "600", "applied": "1800"}
STRATEGY = {"object": "Cluster fleet-local/local", "field": STRATEGY_FIELD, "applied": {}}
TAINT = new_entry(LedgerKind.TAINT, "n1", object_="Node n1", node="n1", since=SINCE)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(("default", "db"), "StoppedVM.default.db", id="a VM"),
        pytest.param(("x" * 243,), "StoppedVM." + "x" * 243, id="253 characters"),
        pytest.param(("x" * 244,), "StoppedVM." + "x" * 226 + "-56754ecb8febd152", id="longer"),
    ],
)
def test_id_is_a_key_of_a_config_map(names: tuple[str, ...], expected: str) -> None:
    found = entry_id(LedgerKind.STOPPED_VM, *names)
    assert re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", found)
    assert found == expected


def test_new_entry_leaves_out_fields_without_a_value() -> None:
    entry = new_entry(LedgerKind.SETTING, "a", "b", object_="Setting a/b", field="f", original=None, since=SINCE)
    assert entry == {"id": "Setting.a.b", "kind": "Setting", "object": "Setting a/b", "field": "f", "since": SINCE}
    values = new_entry(LedgerKind.SETTING, "a", object_="x", original=False, applied=0, since=SINCE)
    assert (values["original"], values["applied"]) == (False, 0)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(None, [], id="no status"),
        pytest.param({"ledger": {}, "originals": "x"}, [], id="wrong types"),
        pytest.param({"ledger": [7, {}, TAINT | {"kind": "Future"}, TAINT | {"id": 1}, TAINT]}, [TAINT], id="invalid"),
        pytest.param({"originals": [7, {"object": "x"}, {"object": 1, "field": "y"}]}, [], id="invalid originals"),
    ],
)
def test_only_valid_entries_are_read(status: object, expected: list[Any]) -> None:
    assert recorded_entries(status) == expected


@pytest.mark.parametrize(
    ("timestamps", "since"),
    [
        pytest.param([{"phase": "NodeUpgrading", "phaseTransitionTimestamp": SINCE}], SINCE, id="of the node upgrade"),
        pytest.param([{"phase": "Initializing"}], "1970-01-01T00:00:00Z", id="not recorded"),
    ],
)
def test_entries_of_version_0_1_are_read(timestamps: list[Any], since: str) -> None:
    status = {"ledger": [TAINT], "originals": [STRATEGY, INTERVAL], "phaseTransitionTimestamps": timestamps}
    strategy, interval = (
        {**STRATEGY, "id": f"Strategy.fleet-local.local.{STRATEGY_FIELD}", "kind": "Strategy", "since": since},
        {**INTERVAL, "id": "Setting.longhorn-system.x.value", "kind": "Setting", "since": since},
    )
    assert recorded_entries(status) == [TAINT, strategy, interval]
    # A crash may leave both.
    known = {**interval, "original": "300"}
    assert recorded_entries({**status, "ledger": [known]}) == [known, strategy]


def test_entries_are_merged_by_id_and_selected_by_kind() -> None:
    other = new_entry(LedgerKind.HOLD, "n1", object_="Node n1", since=SINCE)
    newer = {**TAINT, "since": "2026-01-02T00:00:00Z"}
    assert merged([TAINT, other], [newer]) == [newer, other]
    assert of_kind([TAINT, other], LedgerKind.HOLD, LedgerKind.FILE) == [other]


@pytest.mark.rule("nodes: a failed plan that is deleted leaves what it owes in the same way")
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"currentPhase": "Failed", "ledger": [TAINT]}, True, id="entries"),
        pytest.param({"currentPhase": "Failed", "advised": [{"kind": "Node"}]}, True, id="advised changes"),
        pytest.param({"currentPhase": "Failed", "ledger": []}, False, id="nothing"),
        pytest.param({"currentPhase": "Succeeded", "ledger": [TAINT]}, False, id="succeeded"),
        pytest.param({}, False, id="new"),
    ],
)
def test_failed_plan_owes_what_it_has_recorded(status: dict[str, Any], *, expected: bool) -> None:
    assert owes(status) == expected
