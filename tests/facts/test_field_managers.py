"""The client that last wrote a field."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.field_managers import last_manager

VERSION: dict[str, Any] = {"f:spec": {"f:kubernetesVersion": {}}}


def entry(manager: str, time: str, fields: Any) -> dict[str, Any]:
    return {"manager": manager, "time": time, "operation": "Update", "fieldsV1": fields}


@pytest.mark.parametrize(
    ("entries", "manager"),
    [
        pytest.param([], "", id="nothing recorded"),
        pytest.param([entry("argocd", "2", {"f:spec": {"f:other": {}}})], "", id="another field"),
        pytest.param([entry("argocd", "1", VERSION)], "argocd", id="one owner"),
        pytest.param([entry("manager", "1", VERSION), entry("argocd", "2", VERSION)], "argocd", id="the newest owner"),
        pytest.param([entry("x\ny", "1", VERSION), 7, {"fieldsV1": None}], "x y", id="any type"),
    ],
)
def test_last_manager_of_a_field(entries: list[Any], manager: str) -> None:
    assert last_manager({"metadata": {"managedFields": entries}}, "spec", "kubernetesVersion") == manager


def test_own_manager_is_left_out() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:x": {}}}
    found = [
        {"manager": "own", "time": "2026-01-02T00:00:00Z", "fieldsV1": fields},
        {"manager": "other", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields},
    ]
    obj = {"metadata": {"managedFields": found}}
    assert (last_manager(obj, "spec", "x"), last_manager(obj, "spec", "x", besides="own")) == ("own", "other")
