"""Events of both APIs."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, get, invalid, merge, play, post, strategic

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

EVENTS = "/api/v1/namespaces/$ns/events"
DEFAULT_EVENTS = "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/$ns/events"
_META = {"metadata": {"name": "one"}}
_NOW = "2026-01-02T03:04:05.000000Z"
_NEW = {
    "eventTime": _NOW,
    "reportingController": "a.io/b",
    "reportingInstance": "i",
    "action": "Act",
    "reason": "Why",
    "type": "Normal",
    "regarding": {"kind": "Pod", "namespace": "$ns", "name": "p"},
}


def _event(**more: object) -> dict[str, object]:
    return (
        _META
        | {
            "involvedObject": {"kind": "Pod", "namespace": "$ns", "name": "p"},
            "reason": "Why",
            "message": "so",
            "type": "Normal",
        }
        | more
    )


ROWS = [
    Row(
        title="an Event is stored",
        when=post(EVENTS, _event()),
        look=(
            "reason",
            "involvedObject",
            "metadata.name",
            "type",
            "firstTimestamp",
            "eventTime",
            "source",
            "reportingComponent",
        ),
        then=answered(
            201,
            **{
                "reason": "Why",
                "involvedObject": {"kind": "Pod", "namespace": "$ns", "name": "p"},
                "metadata.name": "one",
                "type": "Normal",
                "firstTimestamp": None,
                "eventTime": None,
                "source": {},
                "reportingComponent": "",
            },
        ),
    ),
    Row(
        title="an Event in another namespace than its object is refused",
        when=post(EVENTS, _event(involvedObject={"kind": "Pod", "namespace": "other"})),
        then=invalid("Event", ("involvedObject.namespace", 'Invalid value: "other": does not match event.namespace')),
    ),
    Row(
        title="an Event about a cluster-scoped object is in the default namespace",
        when=post(
            DEFAULT_EVENTS, _event(involvedObject={"kind": "Node", "name": "n"}) | {"metadata": {"name": "$word"}}
        ),
        look=("metadata.namespace",),
        then=answered(201, **{"metadata.namespace": "default"}),
    ),
    Row(
        title="an Event about a cluster-scoped object is nowhere else",
        when=post(EVENTS, _event(involvedObject={"kind": "Node", "name": "n"})),
        then=invalid("Event", ("involvedObject.namespace", 'Invalid value: "": does not match event.namespace')),
    ),
    Row(
        title="an Event may have any type",
        when=post(EVENTS, _event(type="Strange")),
        look=("type",),
        then=answered(201, type="Strange"),
    ),
    Row(
        title="an Event with an eventTime needs all the rest",
        when=post(EVENTS, _event(eventTime=_NOW)),
        then=invalid(
            "Event",
            ("action", "Required value"),
            ("reportingComponent", 'Invalid value: "": name part must be non-empty'),
            (
                "reportingComponent",
                "Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
            ("reportingComponent", "Required value"),
            ("reportingInstance", "Required value"),
        ),
    ),
    Row(
        title="a name of an Event may be long and dotted",
        when=post(EVENTS, _event() | {"metadata": {"name": "p.18a0b1c2d3e4f5"}}),
        look=("metadata.name",),
        then=answered(201, **{"metadata.name": "p.18a0b1c2d3e4f5"}),
    ),
    Row(
        title="the count of an Event is patched",
        given=(post(EVENTS, _event(count=1)),),
        when=strategic(f"{EVENTS}/one", {"count": 2, "lastTimestamp": "2026-01-02T03:04:05Z", "message": "again"}),
        look=("count", "message", "lastTimestamp"),
        then=answered(200, count=2, message="again", lastTimestamp="$time"),
    ),
    Row(
        title="a new Event is stored",
        when=post(NEW_EVENTS, _META | _NEW),
        look=("reason", "regarding", "note", "reportingController"),
        then=answered(
            201,
            reason="Why",
            regarding={"kind": "Pod", "namespace": "$ns", "name": "p"},
            note="absent",
            reportingController="a.io/b",
        ),
    ),
    Row(
        title="a new Event needs an eventTime",
        when=post(NEW_EVENTS, _META | {key: value for key, value in _NEW.items() if key != "eventTime"}),
        then=invalid("Event", ("eventTime", "Required value")),
    ),
    Row(
        title="a new Event needs its type",
        when=post(NEW_EVENTS, _META | _NEW | {"type": "Strange"}),
        then=invalid("Event", ("type", 'Invalid value: "": has invalid value: Strange')),
    ),
    Row(
        title="a new Event has no count",
        when=post(NEW_EVENTS, _META | _NEW | {"deprecatedCount": 5}),
        then=invalid("Event", ("count", 'Invalid value: "": needs to be unset')),
    ),
    Row(
        title="a new Event does not change",
        given=(post(NEW_EVENTS, _META | _NEW),),
        when=merge(f"{NEW_EVENTS}/one", {"note": "other"}),
        then=invalid("Event", ("message", 'Invalid value: "other": field is immutable')),
    ),
    Row(
        title="the series of a new Event changes",
        given=(post(NEW_EVENTS, _META | _NEW),),
        when=merge(f"{NEW_EVENTS}/one", {"series": {"count": 2, "lastObservedTime": _NOW}}),
        look=("series",),
        then=answered(200, series={"count": 2, "lastObservedTime": "$time"}),
    ),
    Row(
        title="a new Event is read as an old one",
        given=(post(NEW_EVENTS, _META | _NEW | {"note": "so"}),),
        when=get(f"{EVENTS}/one"),
        look=("message", "involvedObject", "reportingComponent", "source"),
        then=answered(
            200,
            message="so",
            involvedObject={"kind": "Pod", "namespace": "$ns", "name": "p"},
            reportingComponent="a.io/b",
            source={},
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_an_event(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
