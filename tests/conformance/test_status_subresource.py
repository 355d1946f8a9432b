"""The status subresource, and when the generation increases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_objects import (
    NO_VERSION,
    NODE,
    NODES,
    NOW,
    TYPE,
    WIDGET,
    WIDGET_KIND,
    WIDGETS_KIND,
    with_metadata,
)
from tests.support.conformance_rows import Row, conflict, invalid, merge, play, post, put
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

STATUS = f"{WIDGET}/status"
ONE = (post(WIDGETS, widget(size=1)),)

ROWS = {
    "create drops the status": Row(
        when=post(WIDGETS, widget() | {"status": {"phase": "x"}}),
        then={"code": 201, "status": "absent", "metadata.generation": 1},
    ),
    "create keeps the status of a Node": Row(
        when=post(NODES, {"metadata": {"name": "$word"}, "status": {"phase": "x"}}),
        then={"code": 201, "status.phase": "x", "metadata.generation": "absent"},
    ),
    "object endpoint ignores the status": Row(
        given=ONE,
        when=merge(WIDGET, {"status": {"phase": "x"}}),
        then={"code": 200, "status": "absent", "metadata.generation": 1, "metadata.resourceVersion": "$version"},
    ),
    "status endpoint writes the status": Row(
        given=ONE,
        when=merge(STATUS, {"status": {"phase": "x"}}),
        then={"code": 200, "status": {"phase": "x"}, "metadata.generation": 1},
    ),
    "status endpoint ignores the spec": Row(
        given=ONE,
        when=merge(STATUS, {"spec": {"size": 5}, "status": {"phase": "x"}}),
        then={"code": 200, "status": {"phase": "x"}, "spec.size": 1, "metadata.generation": 1},
    ),
    "status endpoint ignores labels": Row(
        given=ONE,
        when=merge(STATUS, {"metadata": {"labels": {"a": "b"}}}),
        then={"code": 200, "metadata.labels": "absent"},
    ),
    "status endpoint ignores the spec of a Node": Row(
        given=(post(NODES, {"metadata": {"name": "$word"}}),),
        when=merge(f"{NODE}/status", {"spec": {"unschedulable": True}}),
        then={"code": 200, "spec.unschedulable": "absent"},
    ),
    "old resourceVersion is a conflict": Row(
        given=(*ONE, merge(WIDGET, {"spec": {"size": 4}})),
        when=put(STATUS, with_metadata(widget(), resourceVersion=NOW) | {"status": {"phase": "x"}}),
        then=conflict(WIDGETS_KIND),
    ),
    "status PUT without resourceVersion is refused": Row(
        given=ONE,
        when=put(STATUS, widget() | {"status": {"phase": "x"}}),
        then=invalid(WIDGETS_KIND, NO_VERSION),
    ),
    "status PUT writes only the status": Row(
        given=ONE,
        when=put(
            STATUS,
            with_metadata(widget(size=9), labels={"a": "b"}, resourceVersion=NOW) | {"status": {"phase": "x"}},
        ),
        then={"code": 200, "spec.size": 1, "status": {"phase": "x"}, "metadata.labels": "absent"},
    ),
    "status that violates the schema is refused": Row(
        given=ONE,
        when=merge(STATUS, {"status": {"count": -1, "phase": 5}}),
        then=invalid(
            WIDGET_KIND,
            ("status.count", "Invalid value: -1: count in body should be greater than or equal to 0"),
            ("status.phase", 'Invalid value: "integer": phase in body must be of type string: "integer"', TYPE),
        ),
    ),
    "unknown status field is dropped with a warning": Row(
        given=ONE,
        when=merge(STATUS, {"status": {"strange": 1}}),
        then={"code": 200, "status": {}, "warnings": ['unknown field "status.strange"']},
    ),
    "no-op status keeps the resourceVersion": Row(
        given=(*ONE, merge(STATUS, {"status": {"phase": "x"}})),
        when=merge(STATUS, {"status": {"phase": "x"}}),
        then={"code": 200, "metadata.resourceVersion": "$version"},
    ),
    "spec change increases the generation": Row(
        given=ONE, when=merge(WIDGET, {"spec": {"size": 2}}), then={"code": 200, "metadata.generation": 2}
    ),
    "label change keeps the generation": Row(
        given=ONE,
        when=merge(WIDGET, {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}),
        then={"code": 200, "metadata.generation": 1},
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_status_subresource(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
