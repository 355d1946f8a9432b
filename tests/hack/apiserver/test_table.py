from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hack.apiserver.crds import rows
from hack.apiserver.resources import Column
from hack.apiserver.table import cell, render
from upgrade_manager.api.crd import crd_manifest

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
(PLANS,) = rows(crd_manifest())
PLAN = {
    "apiVersion": "management.harvesterhci.io/v1beta1",
    "kind": "UpgradePlan",
    "metadata": {"name": "demo", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"version": "v1.8.0"},
    "status": {"conditions": [{"type": "Available", "status": "True"}]},
}


def table(*, include: str = "Metadata", columns: bool = True) -> dict[str, Any]:
    return render(PLANS, [PLAN], metadata={"resourceVersion": "7"}, include_object=include, columns=columns, now=NOW)


def test_table_has_the_columns_of_its_definition() -> None:
    made = table()
    assert (made["kind"], made["apiVersion"], made["metadata"]) == ("Table", "meta.k8s.io/v1", {"resourceVersion": "7"})
    names = [column["name"] for column in made["columnDefinitions"]]
    assert names[:7] == ["Name", "Version", "CurrentPhase", "Available", "Progressing", "Degraded", "Age"]
    assert [column["priority"] for column in made["columnDefinitions"]] == [0] * 7 + [1] * 4
    assert made["rows"][0]["cells"][:7] == ["demo", "v1.8.0", None, "True", None, None, "5m"]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        pytest.param("None", None, id="nothing"),
        pytest.param("Object", PLAN, id="object"),
        pytest.param(
            "Metadata",
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": PLAN["metadata"]},
            id="metadata",
        ),
    ],
)
def test_include_object_selects_the_row_object(include: str, expected: dict[str, Any] | None) -> None:
    assert table(include=include)["rows"][0]["object"] == expected


def test_later_watch_events_have_no_column_definitions() -> None:
    made = table(columns=False)
    assert made["columnDefinitions"] == []
    assert made["rows"][0]["cells"][0] == "demo"


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        pytest.param("string", "a", "a", id="a string"),
        pytest.param("string", True, "true", id="a boolean as a string"),
        pytest.param("string", {"a": [1]}, '{"a":[1]}', id="an object as a string"),
        pytest.param("string", None, None, id="null"),
        pytest.param("integer", 3, 3, id="an integer"),
        pytest.param("integer", 3.7, 3, id="a fraction as an integer"),
        pytest.param("integer", "3", None, id="a string as an integer"),
        pytest.param("number", 3, 3.0, id="a number"),
        pytest.param("number", True, None, id="a boolean as a number"),
        pytest.param("boolean", False, False, id="a boolean"),
        pytest.param("boolean", "no", None, id="a string as a boolean"),
        pytest.param("date", "2026-01-01T00:04:00Z", "60s", id="a time"),
        pytest.param("date", 7, None, id="a number as a time"),
    ],
)
def test_cell_follows_the_type_of_its_column(kind: str, value: Any, shown: Any) -> None:
    assert cell(Column(name="X", type=kind, json_path=".x"), {"x": value}, NOW) == shown


def test_missing_value_has_an_empty_cell() -> None:
    assert cell(Column(name="X", type="string", json_path=".x.y"), {}, NOW) is None
    assert cell(Column(name="X", type="string", json_path="=self.x"), {}, NOW) is None
