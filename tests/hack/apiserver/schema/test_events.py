from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.events import event, new_event

TIME = "2026-01-01T00:00:00.000000Z"
REPORT = {"reportingInstance": "pod-0", "action": "Reconcile", "reason": "Done"}


def old_kind(home: str, about: str = "", **more: Any) -> list[str]:
    body = {"metadata": {"namespace": home}, "involvedObject": {"namespace": about}} | more
    return [str(error) for error in event(body, None)]


def new_kind(home: str = "default", before: dict[str, Any] | None = None, **more: Any) -> list[str]:
    known = {"eventTime": TIME, "reportingController": "m", "type": "Normal", "regarding": {}, **REPORT}
    meta = {"metadata": {"namespace": home}}
    old = None if before is None else meta | known | before
    return [str(error) for error in new_event(meta | known | more, old)]


@pytest.mark.parametrize(
    ("home", "about", "allowed"),
    [
        pytest.param("default", "", True, id="about the cluster, in default"),
        pytest.param("kube-system", "", False, id="about the cluster, elsewhere"),
        pytest.param("harvester-system", "harvester-system", True, id="where its subject is"),
        pytest.param("default", "harvester-system", False, id="elsewhere"),
    ],
)
def test_where_an_event_without_event_time_lives(*, home: str, about: str, allowed: bool) -> None:
    expected = [f'involvedObject.namespace: Invalid value: "{about}": does not match event.namespace']
    assert old_kind(home, about) == ([] if allowed else expected)


@pytest.mark.parametrize(("home", "allowed"), [("default", True), ("kube-system", True), ("harvester-system", False)])
def test_where_an_event_with_event_time_about_the_cluster_lives(*, home: str, allowed: bool) -> None:
    found = old_kind(home, eventTime=TIME, reportingComponent="m", **REPORT)
    assert found == ([] if allowed else ['involvedObject.namespace: Invalid value: "": does not match event.namespace'])
    assert (new_kind(home) == []) is allowed


def test_an_event_with_event_time_says_who_reports_what() -> None:
    found = old_kind("default", eventTime=TIME)
    assert found[0] == "reportingComponent: Required value"
    assert found[-3:] == [f"{field}: Required value" for field in ("reportingInstance", "action", "reason")]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, [], id="a sound one"),
        pytest.param({"eventTime": None}, ["eventTime: Required value"], id="no time"),
        pytest.param(
            {"reason": "x" * 129}, ['reason: Invalid value: "": can have at most 128 characters'], id="a long reason"
        ),
        pytest.param(
            {"note": "x" * 1025}, ['note: Invalid value: "": can have at most 1024 characters'], id="a long note"
        ),
        pytest.param({"type": "Bad"}, ['type: Invalid value: "": has invalid value: Bad'], id="an unknown type"),
        pytest.param(
            {"deprecatedCount": 2},
            ['deprecatedCount: Invalid value: "": needs to be unset'],
            id="a field of the old API",
        ),
    ],
)
def test_an_event_of_the_new_api(more: dict[str, Any], expected: list[str]) -> None:
    assert new_kind(**more) == expected


def test_a_reporter_has_a_qualified_name() -> None:
    (found,) = new_kind(reportingController="a b")
    assert found.startswith('reportingController: Invalid value: "a b": name part must consist of')


def test_only_the_series_of_an_event_of_the_new_api_changes() -> None:
    assert new_kind(before={}, series={"count": 2}) == []
    assert new_kind(before={}, note="other") == ['note: Invalid value: "other": field is immutable']


def test_an_event_of_the_old_api_may_change() -> None:
    body = {"metadata": {"namespace": "default"}, "message": "new"}
    assert list(event(body, body | {"message": "old"})) == []
