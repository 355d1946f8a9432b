"""Built-in objects read as Go reads them."""

from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.builtin import ROWS
from hack.apiserver.schema.decoding import DecodingError, decode
from hack.apiserver.schema.go_types import type_of
from hack.apiserver.schema.quantities import QuantityError, canonical
from hack.apiserver.schema.times import TimeError, rewritten


@pytest.mark.parametrize("name", [row.resource.name for row in ROWS])
def test_every_built_in_kind_has_a_type(name: str) -> None:
    assert type_of(name) is not None


def read(resource: str, value: Any) -> tuple[Any, list[str]]:
    """An object, and the paths of its unknown fields."""
    kind = type_of(resource)
    assert kind is not None
    unknown: list[str] = []
    return decode(value, kind, unknown=unknown), unknown


def test_unknown_fields_go_and_are_told() -> None:
    spec = {"containers": [{"name": "c", "resources": {}, "odd": 1}], "odd": 1}
    found, unknown = read("pods", {"metadata": {"odd": 1}, "spec": spec, "status": {}})
    assert found == {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]}, "status": {}}
    assert unknown == ["metadata.odd", "spec.containers[0].odd", "spec.odd"]


def test_what_is_sound_is_shared() -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "resources": {}}]}, "status": {}}
    assert read("pods", pod)[0] is pod


def test_null_is_what_go_has_for_nothing() -> None:
    ports = [{"containerPort": None}, None]
    found, _ = read("pods", {"metadata": {}, "spec": {"containers": [{"name": "c", "ports": ports}]}, "status": {}})
    assert found["spec"]["containers"][0]["ports"] == [{"containerPort": 0}, {"containerPort": 0}]


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        pytest.param(
            "jobs.batch",
            {"spec": {"suspend": "no"}},
            "json: cannot unmarshal string into Go struct field JobSpec.spec.suspend of type bool",
            id="a text for a boolean",
        ),
        pytest.param(
            "pods",
            {"spec": {"nodeSelector": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type string",
            id="a number in a map of texts",
        ),
        pytest.param("secrets", {"data": {"a": "ab%="}}, "illegal base64 data at input byte 2", id="no base64"),
    ],
)
def test_a_wrong_type_is_told_in_go_s_words(resource: str, value: Any, text: str) -> None:
    with pytest.raises(DecodingError) as fault:
        read(resource, value)
    assert str(fault.value) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.5Gi", "512Mi"), ("1000m", "1"), ("0.1", "100m"), ("1500M", "1500M"), ("1024Ki", "1Mi"), ("0", "0")],
)
def test_a_quantity_has_one_form(text: str, expected: str) -> None:
    assert canonical(text) == expected


def test_what_is_no_quantity_is_refused() -> None:
    with pytest.raises(QuantityError):
        canonical("lots")


@pytest.mark.parametrize(
    ("text", "fine", "expected"),
    [
        ("2026-01-02T03:04:05Z", False, "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.678+02:00", False, "2026-01-02T01:04:05Z"),
        ("2026-01-02T03:04:05Z", True, "2026-01-02T03:04:05.000000Z"),
    ],
)
def test_a_time_has_one_form(text: str, fine: bool, expected: str) -> None:  # noqa: FBT001  # a row
    assert rewritten(text, fine=fine) == expected


@pytest.mark.parametrize(("text", "part"), [("now", "2006"), ("2026-01-02", "T"), ("2026-13-45T00:00:00Z", "month")])
def test_what_is_no_time_is_refused(text: str, part: str) -> None:
    with pytest.raises(TimeError) as fault:
        rewritten(text, fine=False)
    assert part in str(fault.value)
