"""Events of both APIs."""
# what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, invalid, play, post, strategic

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

EVENTS = "/api/v1/namespaces/$ns/events"
DEFAULT_EVENTS = "/api/v1/namespaces/default/events"
_META = {"metadata": {"name": "one"}}
_NOW = "2026-01-02T03:04:05.000000Z"


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
        title="the count of an Event is patched",
        given=(post(EVENTS, _event(count=1)),),
        when=strategic(f"{EVENTS}/one", {"count": 2, "lastTimestamp": "2026-01-02T03:04:05Z", "message": "again"}),
        look=("count", "message", "lastTimestamp"),
        then=answered(200, count=2, message="again", lastTimestamp="$time"),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_an_event(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
