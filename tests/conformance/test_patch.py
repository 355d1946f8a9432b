"""Merge patches, JSON patches, strategic merge patches, and writes of the status."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.conformance_objects import (
    BLUE,
    DEPLOYMENTS,
    MAP,
    MAPS,
    NODE,
    NODES,
    NOW,
    TYPE,
    UNSUPPORTED_PATCH,
    WIDGET,
    WIDGET_KIND,
    WIDGETS_KIND,
    with_metadata,
)
from tests.support.server.conformance_rows import (
    ApiCall,
    Row,
    conflict,
    invalid,
    json_patch,
    merge,
    merged,
    not_found,
    play,
    post,
    put,
    refused,
    strategic,
)
from tests.support.server.shapes import WIDGETS, widget

pytestmark = pytest.mark.servers

_METADATA = {"labels": {"l": "m"}, "annotations": {"a.io/b": "1"}, "finalizers": ["a.io/b"]}
_DATA = {"a": "b", "c": "d"}
ONE = (post(MAPS, with_metadata({"data": _DATA}, **_METADATA)),)
_SPEC = {"names": ["x", "y"], "options": {"n": 1}, "free": {"list": [1, 2, 3], "deep": {"er": 1}}}
CUSTOM = (post(WIDGETS, widget(**_SPEC)),)
SIZED = (post(WIDGETS, widget(size=1)),)
STATUS_PATH = f"{WIDGET}/status"
_WRONG = "the server rejected our request due to an error in our request"
_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [{"name": "one", "image": "i:1", "args": ["x", "y"]}, {"name": "two", "image": "i:2"}],
        "nodeSelector": {"n": "1"},
    },
}
_DEPLOYMENT = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}


def _patched(when: ApiCall, **change: object) -> Row:
    """Patch a ConfigMap: these fields of data and metadata change."""
    metadata = {f"metadata.{key}": change.get(key, value) for key, value in _METADATA.items()}
    return Row(given=ONE, when=when, then={"code": 200, "data": change.get("data", _DATA)} | metadata)


def _changed(when: ApiCall, generation: int = 2, warnings: tuple[str, ...] = (), **change: object) -> Row:
    """Patch a Widget: these fields of its spec change."""
    spec = {"mode": "slow", "nested": {"level": 3}} | _SPEC | change
    then = {"code": 200, "spec": spec, "metadata.generation": generation}
    return Row(given=CUSTOM, when=when, then=then | ({"warnings": [*warnings]} if warnings else {}))


def _template(patch: dict[str, Any], **then: object) -> Row:
    """Patch the Pod template of a Deployment."""
    return Row(
        given=(post(DEPLOYMENTS, {"metadata": {"name": "one"}, "spec": _DEPLOYMENT}),),
        when=strategic(f"{DEPLOYMENTS}/one", {"spec": {"template": {"spec": patch}}}),
        then={"code": 200} | {f"spec.template.spec.{path}": value for path, value in then.items()},
    )


def _operations(*operations: tuple[str, str] | tuple[str, str, str], path: str = MAP) -> ApiCall:
    """Patch by operations of op, path and value."""
    return json_patch(path, [dict(zip(("op", "path", "value"), operation, strict=False)) for operation in operations])


MERGE_ROWS = {
    "members are merged": _patched(merge(MAP, {"data": {"e": "f"}}), data=_DATA | {"e": "f"}),
    "null removes a member": _patched(merge(MAP, {"data": {"a": None}}), data={"c": "d"}),
    "list is replaced": _patched(merge(MAP, {"metadata": {"finalizers": ["c.io/d"]}}), finalizers=["c.io/d"]),
    "old resourceVersion is a conflict": Row(
        given=ONE,
        when=merge(MAP, {"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}}),
        then=conflict("configmaps"),
    ),
    "members of a custom object are merged": _changed(
        merge(WIDGET, {"spec": {"options": {"m": 2}, "size": 5}}), options={"m": 2, "n": 1}, size=5
    ),
    "unknown field is dropped with a warning": _changed(
        merge(WIDGET, {"spec": {"strange": 1}}), 1, ('unknown field "spec.strange"',)
    ),
    "value that violates the schema is refused": Row(
        given=CUSTOM,
        when=merge(WIDGET, {"spec": {"size": 99, "colour": "blue"}}),
        then=invalid(
            WIDGET_KIND,
            BLUE,
            ("spec.size", "Invalid value: 99: spec.size in body should be less than or equal to 10"),
        ),
    ),
    "no-op patch keeps the resourceVersion": Row(
        given=ONE,
        when=merge(MAP, {"data": {"a": "b"}}),
        then={"code": 200, "metadata.resourceVersion": "$version"},
    ),
    "missing object is not found": Row(when=merge(MAP, {"data": {}}), then=not_found("configmaps")),
}
JSON_ROWS = {
    "add creates a member": _patched(_operations(("add", "/data/e", "f")), data=_DATA | {"e": "f"}),
    "remove deletes a member": _patched(_operations(("remove", "/data/a")), data={"c": "d"}),
    "failing test refuses all operations": Row(
        given=ONE,
        when=_operations(("remove", "/data/c"), ("test", "/data/a", "x")),
        then=refused(422, "Invalid", _WRONG, {}),
    ),
    "test of a missing member refuses all operations": Row(
        given=ONE,
        when=_operations(("test", "/metadata/annotations/x.io~1y", "1"), ("remove", "/data/c")),
        then=refused(422, "Invalid", _WRONG, {}),
    ),
    "old resourceVersion is a conflict": Row(
        given=ONE, when=_operations(("replace", "/metadata/resourceVersion", "1")), then=conflict("configmaps")
    ),
    "dash appends to a list": _changed(_operations(("add", "/spec/names/-", "z"), path=WIDGET), names=["x", "y", "z"]),
    "no-op patch keeps the resourceVersion": Row(
        given=ONE,
        when=_operations(("replace", "/data/a", "b")),
        then={"code": 200, "metadata.resourceVersion": "$version"},
    ),
}
STRATEGIC_ROWS = {
    "containers merge by name": _template(
        {"containers": [{"name": "two", "image": "i:3"}]},
        **{"containers.0.image": "i:1", "containers.1.image": "i:3"},
    ),
    "conditions merge by type": Row(
        given=(
            post(
                NODES,
                {
                    "metadata": {"name": "$word"},
                    "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]},
                },
            ),
        ),
        when=strategic(f"{NODE}/status", {"status": {"conditions": [{"type": "B", "status": "False"}]}}),
        then={
            "code": 200,
            "status.conditions": [
                {"type": "A", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None},
                {"type": "B", "status": "False", "lastHeartbeatTime": None, "lastTransitionTime": None},
            ],
        },
    ),
    "custom kind refuses strategic merge patches": Row(
        given=(post(WIDGETS, widget()),), when=strategic(WIDGET, {}), then=UNSUPPORTED_PATCH
    ),
}
STATUS_ROWS = {
    "create drops the status": Row(
        when=post(WIDGETS, widget() | {"status": {"phase": "x"}}),
        then={"code": 201, "status": "absent", "metadata.generation": 1},
    ),
    "object endpoint ignores the status": Row(
        given=SIZED,
        when=merge(WIDGET, {"status": {"phase": "x"}}),
        then={"code": 200, "status": "absent", "metadata.generation": 1, "metadata.resourceVersion": "$version"},
    ),
    "status endpoint writes the status": Row(
        given=SIZED,
        when=merge(STATUS_PATH, {"status": {"phase": "x"}}),
        then={"code": 200, "status": {"phase": "x"}, "metadata.generation": 1},
    ),
    "status endpoint ignores the spec": Row(
        given=SIZED,
        when=merge(STATUS_PATH, {"spec": {"size": 5}, "status": {"phase": "x"}}),
        then={"code": 200, "status": {"phase": "x"}, "spec.size": 1, "metadata.generation": 1},
    ),
    "old resourceVersion is a conflict": Row(
        given=(*SIZED, merge(WIDGET, {"spec": {"size": 4}})),
        when=put(STATUS_PATH, with_metadata(widget(), resourceVersion=NOW) | {"status": {"phase": "x"}}),
        then=conflict(WIDGETS_KIND),
    ),
    "status PUT writes only the status": Row(
        given=SIZED,
        when=put(
            STATUS_PATH,
            with_metadata(widget(size=9), labels={"a": "b"}, resourceVersion=NOW) | {"status": {"phase": "x"}},
        ),
        then={"code": 200, "spec.size": 1, "status": {"phase": "x"}, "metadata.labels": "absent"},
    ),
    "status that violates the schema is refused": Row(
        given=SIZED,
        when=merge(STATUS_PATH, {"status": {"count": -1, "phase": 5}}),
        then=invalid(
            WIDGET_KIND,
            ("status.count", "Invalid value: -1: count in body should be greater than or equal to 0"),
            ("status.phase", 'Invalid value: "integer": phase in body must be of type string: "integer"', TYPE),
        ),
    ),
}
ROWS = merged(
    {
        "merge": MERGE_ROWS,
        "JSON": JSON_ROWS,
        "strategic": STRATEGIC_ROWS,
        "status": STATUS_ROWS,
    }
)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_patch(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
