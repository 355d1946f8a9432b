"""Creates and updates: metadata, names, resourceVersions, dry runs, unknown fields, refused requests."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server.bareapi import BareApi
from tests.support.server.conformance_objects import (
    CUSTOM,
    MAP,
    MAPS,
    NO_VERSION,
    NOW,
    ONE,
    SYSTEM_METADATA,
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
    get,
    invalid,
    merge,
    merged,
    not_found,
    play,
    post,
    put,
    refused,
)
from tests.support.server.shapes import WIDGETS, widget

# aiohttp warns about large bodies.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore:Sending a large body")]

MAP_OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
SMALL = widget(size=1)
ALL = {"dryRun": "All"}
STRICT = {"fieldValidation": "Strict"}
STRANGE = with_metadata(
    widget(strange=1, size=2, nested={"deep": {"odd": 1}}, parts=[{"name": "a", "odd": 1}]) | {"top": 1}, odd=1
)
STRANGE_FIELDS = [
    f'unknown field "{field}"'
    for field in ("metadata.odd", "spec.nested.deep.odd", "spec.parts[0].odd", "spec.strange", "top")
]
PRUNED = {
    "code": 201,
    "spec": {"mode": "slow", "nested": {"deep": {}, "level": 3}, "parts": [{"name": "a", "weight": 1}], "size": 2},
    "top": "absent",
}
UNSERVED = refused(404, "NotFound", "the server could not find the requested resource", {})


def _undecodable(kind: str, version: str, *fields: str) -> dict[str, Any]:
    text = f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {", ".join(fields)}'
    return refused(400, "BadRequest", text)


CREATE_ROWS = {
    "object gets system fields": Row(
        when=post(MAPS, MAP_OBJECT),
        then={
            "code": 201,
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata.name": "one",
            "metadata.namespace": "$ns",
            "metadata.uid": "$uid",
            "metadata.creationTimestamp": "$time",
            "metadata.generation": "absent",
        },
    ),
    "namespace other than the path's is refused": Row(
        when=post(WIDGETS, with_metadata(widget(), namespace="other")),
        then=refused(
            400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"
        ),
    ),
    "missing namespace is refused": Row(
        when=post("/apis/shapes.example.io/v1/namespaces/$ns-none/widgets", widget()),
        then=not_found("namespaces", "$ns-none"),
    ),
    "uppercase name is refused": Row(
        when=post(WIDGETS, widget("One")),
        then=invalid(
            WIDGET_KIND,
            (
                "metadata.name",
                "Invalid value: \"One\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            name="One",
        ),
    ),
    "generated name has its prefix": Row(
        when=post(MAPS, MAP_OBJECT | {"metadata": {"generateName": "one-"}}),
        then={"code": 201, "metadata.generateName": "one-"},
    ),
    "system fields of the request are replaced": Row(
        when=post(
            WIDGETS,
            with_metadata(
                widget(),
                uid="mine",
                creationTimestamp="2001-01-01T00:00:00Z",
                deletionTimestamp="2001-01-01T00:00:00Z",
                deletionGracePeriodSeconds=5,
                generation=7,
                selfLink="/x",
            ),
        ),
        then={"code": 201, "metadata": SYSTEM_METADATA},
    ),
    "empty maps and lists in metadata are dropped": Row(
        when=post(WIDGETS, with_metadata(widget(), labels={}, annotations={}, finalizers=[], ownerReferences=[])),
        then={"code": 201, "metadata": SYSTEM_METADATA},
    ),
}
UPDATE_ROWS = {
    "object is replaced": Row(
        given=(post(MAPS, MAP_OBJECT | {"data": {"a": "b"}}),),
        when=put(MAP, with_metadata(MAP_OBJECT, resourceVersion=NOW) | {"data": {"c": "d"}}),
        then={"code": 200, "data": {"c": "d"}},
    ),
    "custom update without resourceVersion is refused": Row(
        given=CUSTOM, when=put(WIDGET, SMALL), then=invalid(WIDGETS_KIND, NO_VERSION)
    ),
    "wrong resourceVersion is a conflict": Row(
        given=CUSTOM, when=put(WIDGET, with_metadata(SMALL, resourceVersion="1")), then=conflict(WIDGETS_KIND)
    ),
    "wrong uid is a conflict": Row(
        given=CUSTOM,
        when=put(WIDGET, with_metadata(SMALL, uid="other", resourceVersion=NOW)),
        then=conflict(
            WIDGETS_KIND,
            "StorageError: invalid object, Code: 4, Key: /registry/shapes.example.io/widgets/$ns/one, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: $uid",
        ),
    ),
    "no-op update keeps the resourceVersion": Row(
        given=(post(WIDGETS, SMALL),),
        when=put(WIDGET, with_metadata(SMALL, resourceVersion=NOW)),
        then={"code": 200, "metadata.resourceVersion": "$version", "metadata.generation": 1},
    ),
}
DRY_RUN_ROWS = {
    "create returns the object without resourceVersion": Row(
        when=post(WIDGETS, widget(), **ALL),
        then={
            "code": 201,
            "metadata": {key: value for key, value in SYSTEM_METADATA.items() if key != "resourceVersion"},
            "spec": {"mode": "slow", "nested": {"level": 3}},
        },
    ),
    "create stores nothing": Row(given=(post(MAPS, MAP_OBJECT, **ALL),), when=get(MAP), then=not_found("configmaps")),
    "patch stores nothing": Row(
        given=(*CUSTOM, merge(WIDGET, {"spec": {"size": 3}}, **ALL)),
        when=get(WIDGET),
        then={"code": 200, "spec.size": "absent", "metadata.generation": 1},
    ),
}
FIELD_VALIDATION_ROWS = {
    "default mode warns of unknown fields": Row(
        when=post(WIDGETS, STRANGE), then=PRUNED | {"warnings": STRANGE_FIELDS}
    ),
    "Strict refuses unknown fields": Row(
        when=post(WIDGETS, STRANGE, **STRICT), then=_undecodable("Widget", "v1", *STRANGE_FIELDS)
    ),
    "Strict refuses a merge patch with an unknown field": Row(
        given=CUSTOM,
        when=merge(WIDGET, {"spec": {"odd": 1}}, **STRICT),
        then=invalid("", ("patch", 'Invalid value: $object: strict decoding error: unknown field "spec.odd"'), name=""),
    ),
}
REQUEST_ROWS = {
    "unknown patch media type is refused": Row(
        given=CUSTOM, when=ApiCall(method="PATCH", path=WIDGET, body=b"{}"), then=UNSUPPORTED_PATCH
    ),
    "unknown group is not found": Row(
        when=post("/apis/none.io/v1/things", {}), then={"code": 404, "text": "404 page not found\n"}
    ),
    "unknown subresource is not found": Row(given=ONE, when=put(f"{MAP}/things", {}), then=UNSERVED),
}
ROWS = merged(
    {
        "create": CREATE_ROWS,
        "update": UPDATE_ROWS,
        "dry run": DRY_RUN_ROWS,
        "field validation": FIELD_VALIDATION_ROWS,
        "request": REQUEST_ROWS,
    }
)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_write(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
