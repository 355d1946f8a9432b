"""What is read of a request before anything is known about its object."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Ask, Row, answered, delete, invalid, merge, play, post, put, refused
from tests.support.shapes import PLAINS, WIDGETS, plain, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

# aiohttp warns where a body is so large that sending it might take a while.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore:Sending a large body")]

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
ONE = {"metadata": {"name": "one"}}
GIVEN = (post(MAPS, ONE),)


def _raw(method: str, path: str, body: bytes | None, media_type: str = "application/json") -> Ask:
    return Ask(method=method, path=path, body=body, media_type=media_type)


ROWS = [
    Row(
        title="a body that is no JSON is refused",
        when=_raw("POST", MAPS, b"{x"),
        then=refused(
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'x' looking for beginning of object key string ({x)",
            None,
        ),
    ),
    Row(
        title="a body that ends too early is refused",
        when=_raw("POST", MAPS, b'{"metadata": {"name": "one"}'),
        then=refused(
            400,
            "BadRequest",
            'the object provided is unrecognized (must be of type ConfigMap): couldn\'t get version/kind; json parse error: unexpected end of JSON input ({"metadata": {"name": "one"})',
            None,
        ),
    ),
    Row(
        title="an empty body is refused",
        when=_raw("POST", MAPS, b""),
        then=refused(
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
            None,
        ),
    ),
    Row(
        title="a body of null is refused",
        when=_raw("POST", MAPS, b"null"),
        then=invalid("ConfigMap", ("metadata.name", "Required value: name or generateName is required"), name=""),
    ),
    Row(
        title="an empty object is refused",
        when=_raw("POST", MAPS, b"{}"),
        then=invalid("ConfigMap", ("metadata.name", "Required value: name or generateName is required"), name=""),
    ),
    Row(
        title="a list is refused",
        when=_raw("POST", MAPS, b"[]"),
        then=refused(
            400,
            "BadRequest",
            'the object provided is unrecognized (must be of type ConfigMap): couldn\'t get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (5b5d)',
            None,
        ),
    ),
    Row(
        title="a text is refused",
        when=_raw("POST", MAPS, b'"x"'),
        then=refused(
            400,
            "BadRequest",
            'the object provided is unrecognized (must be of type ConfigMap): couldn\'t get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (227822)',
            None,
        ),
    ),
    Row(
        title="two objects are refused",
        when=_raw("POST", MAPS, b'{"metadata":{"name":"one"}} {}'),
        then=refused(
            400,
            "BadRequest",
            'the object provided is unrecognized (must be of type ConfigMap): couldn\'t get version/kind; json parse error: invalid character \'{\' after top-level value ({"metadata":{"name":"one"}} {})',
            None,
        ),
    ),
    Row(
        title="what is no JSON is refused for a custom kind",
        when=_raw("POST", WIDGETS, b"{x"),
        then=refused(
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: invalid character 'x' looking for beginning of object key string ({x)",
            None,
        ),
    ),
    Row(
        title="an empty body is refused for a custom kind",
        when=_raw("POST", WIDGETS, b""),
        then=refused(
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
            None,
        ),
    ),
    Row(
        title="a list is refused for a custom kind",
        when=_raw("POST", WIDGETS, b"[]"),
        then=refused(
            400,
            "BadRequest",
            'the object provided is unrecognized (must be of type Widget): couldn\'t get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } (5b5d)',
            None,
        ),
    ),
    Row(
        title="bytes that are no UTF-8 are replaced",
        when=_raw("POST", MAPS, b'{"metadata":{"name":"one"},"data":{"a":"\xff"}}'),
        look=("data",),
        then=answered(201, data={"a": "�"}),
    ),
    Row(
        title="bytes that are no UTF-8 are replaced for a custom kind",
        when=_raw(
            "POST",
            PLAINS,
            b'{"apiVersion":"shapes.example.io/v1","kind":"Plain","metadata":{"name":"one"},"status":{"phase":"\xff"}}',
        ),
        look=("status",),
        then=answered(201, status={"phase": "�"}),
    ),
    Row(
        title="a media type that nobody knows is refused",
        when=_raw("POST", MAPS, b"x", "text/plain"),
        then=refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
            None,
        ),
    ),
    Row(
        title="a media type that nobody knows is refused for a custom kind",
        when=_raw("POST", WIDGETS, b"x", "text/plain"),
        then=refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
            None,
        ),
    ),
    Row(
        title="a media type may have parameters",
        when=_raw("POST", MAPS, b'{"metadata":{"name":"one"}}', "application/json; charset=utf-8"),
        look=("metadata.name",),
        then=answered(201, **{"metadata.name": "one"}),
    ),
    Row(
        title="no media type is JSON",
        when=_raw("POST", MAPS, b'{"metadata":{"name":"one"}}', ""),
        look=("metadata.name",),
        then=refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
            None,
        ),
    ),
    Row(
        title="YAML is read",
        when=_raw("POST", MAPS, b"metadata:\n  name: one\ndata:\n  a: b\n", "application/yaml"),
        look=("data",),
        then=answered(201, data={"a": "b"}),
    ),
    Row(
        title="a patch of a media type that nobody knows is refused",
        given=GIVEN,
        when=_raw("PATCH", MAP, b"{}", "application/json"),
        then=refused(415, "UnsupportedMediaType", "415: Unsupported Media Type", {}),
    ),
    Row(
        title="a patch of a media type that nobody knows is refused for a custom kind",
        given=(post(WIDGETS, widget()),),
        when=_raw("PATCH", f"{WIDGETS}/one", b"{}", "application/json"),
        then=refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            None,
        ),
    ),
    Row(
        title="an update of a media type that nobody knows is refused",
        given=GIVEN,
        when=_raw("PUT", MAP, b"{}", "application/merge-patch+json"),
        then=refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
            None,
        ),
    ),
    Row(
        title="an unknown dryRun is refused",
        when=post(MAPS, ONE, dryRun="Some"),
        then=invalid(
            "CreateOptions.meta.k8s.io", ("dryRun", 'Unsupported value: ["Some"]: supported values: "All"'), name=""
        ),
    ),
    Row(
        title="an unknown dryRun of a patch is refused",
        given=GIVEN,
        when=merge(MAP, {}, dryRun="Some"),
        then=invalid(
            "PatchOptions.meta.k8s.io", ("dryRun", 'Unsupported value: ["Some"]: supported values: "All"'), name=""
        ),
    ),
    Row(
        title="an unknown dryRun of an update is refused",
        given=GIVEN,
        when=put(MAP, ONE, dryRun="Some"),
        then=invalid(
            "UpdateOptions.meta.k8s.io", ("dryRun", 'Unsupported value: ["Some"]: supported values: "All"'), name=""
        ),
    ),
    Row(
        title="an unknown dryRun of a delete is refused",
        given=GIVEN,
        when=delete(MAP, dryRun="Some"),
        then=invalid(
            "DeleteOptions.meta.k8s.io", ("dryRun", 'Unsupported value: ["Some"]: supported values: "All"'), name=""
        ),
    ),
    Row(
        title="an unknown fieldValidation is refused",
        when=post(MAPS, ONE, fieldValidation="Some"),
        then=invalid(
            "CreateOptions.meta.k8s.io",
            ("fieldValidation", 'Unsupported value: "Some": supported values: "", "Ignore", "Strict", "Warn"'),
            name="",
        ),
    ),
    Row(
        title="an unknown fieldValidation of an update is refused",
        given=GIVEN,
        when=put(MAP, ONE, fieldValidation="Some"),
        then=invalid(
            "UpdateOptions.meta.k8s.io",
            ("fieldValidation", 'Unsupported value: "Some": supported values: "", "Ignore", "Strict", "Warn"'),
            name="",
        ),
    ),
    Row(
        title="an unknown fieldValidation of a patch is refused",
        given=GIVEN,
        when=merge(MAP, {}, fieldValidation="Some"),
        then=invalid(
            "PatchOptions.meta.k8s.io",
            ("fieldValidation", 'Unsupported value: "Some": supported values: "", "Ignore", "Strict", "Warn"'),
            name="",
        ),
    ),
    Row(
        title="an unknown parameter does not matter",
        when=post(MAPS, ONE, strange="x"),
        look=("metadata.name",),
        then=answered(201, **{"metadata.name": "one"}),
    ),
    Row(
        title="force is for apply only",
        given=GIVEN,
        when=merge(MAP, {}, force="true"),
        then=invalid(
            "PatchOptions.meta.k8s.io", ("force", "Forbidden: may not be specified for non-apply patch"), name=""
        ),
    ),
    Row(
        title="a group that does not exist is not found",
        when=post("/apis/none.io/v1/things", {}),
        then=answered(404, text="404 page not found\n"),
    ),
    Row(
        title="a version that does not exist is not found",
        when=post("/apis/apps/v7/namespaces/$ns/deployments", {}),
        then=refused(404, "NotFound", "the server could not find the requested resource", {}),
    ),
    Row(
        title="a custom version that does not exist is not found",
        when=post("/apis/shapes.example.io/v7/namespaces/$ns/widgets", {}),
        then=answered(404, text="404 page not found\n"),
    ),
    Row(
        title="a kind that does not exist is not found",
        when=post("/api/v1/namespaces/$ns/things", {}),
        then=refused(404, "NotFound", "the server could not find the requested resource", {}),
    ),
    Row(
        title="a custom kind that does not exist is not found",
        when=post("/apis/shapes.example.io/v1/namespaces/$ns/things", {}),
        then=answered(404, text="404 page not found\n"),
    ),
    Row(
        title="a subresource that does not exist is not found",
        given=GIVEN,
        when=put(f"{MAP}/things", {}),
        then=refused(404, "NotFound", "the server could not find the requested resource", {}),
    ),
    Row(
        title="a path that means nothing is not found",
        when=post("/nothing", {}),
        then=answered(404, text="404 page not found\n"),
    ),
    Row(
        title="a verb that HTTP does not know is refused",
        given=GIVEN,
        when=_raw("BREW", MAP, None),
        then=refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}),
    ),
    Row(
        title="a POST to an object is refused",
        given=GIVEN,
        when=post(MAP, ONE),
        then=refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}),
    ),
    Row(
        title="a POST to a custom object is refused",
        given=(post(WIDGETS, widget()),),
        when=post(f"{WIDGETS}/one", widget()),
        then=refused(
            409,
            "AlreadyExists",
            'widgets.shapes.example.io "one" already exists',
            {"name": "one", "group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="a PUT to a custom collection is refused",
        when=put(WIDGETS, widget()),
        then=refused(400, "BadRequest", "name must be provided", None),
    ),
    Row(
        title="a POST to a status is refused",
        given=(post(WIDGETS, widget()),),
        when=post(f"{WIDGETS}/one/status", widget()),
        then=refused(
            405,
            "MethodNotAllowed",
            'create is not supported on resources of kind "widgets.shapes.example.io"',
            {"group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="a DELETE of a status is refused",
        given=(post(WIDGETS, widget()),),
        when=delete(f"{WIDGETS}/one/status"),
        then=refused(
            405,
            "MethodNotAllowed",
            'delete is not supported on resources of kind "widgets.shapes.example.io"',
            {"group": "shapes.example.io", "kind": "widgets"},
        ),
    ),
    Row(
        title="a DELETE of all namespaces is refused",
        when=delete("/api/v1/namespaces"),
        then=refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}),
    ),
    Row(
        title="a body above three megabytes is refused",
        when=post(MAPS, ONE | {"data": {"a": "b" * 3145728}}),
        then=refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", None),
    ),
    Row(
        title="a body above three megabytes is refused for a custom kind",
        when=post(WIDGETS, widget(word="b" * 3145728)),
        then=refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", None),
    ),
    Row(
        title="a patch above three megabytes is refused",
        given=GIVEN,
        when=merge(MAP, {"data": {"a": "b" * 3145728}}),
        then=refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", None),
    ),
    Row(
        title="an update above three megabytes is refused",
        given=GIVEN,
        when=put(MAP, ONE | {"data": {"a": "b" * 3145728}}),
        then=refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728", None),
    ),
    Row(
        title="a custom object above the limit of etcd is refused",
        when=post(PLAINS, plain(spec={}, status={"phase": "b" * 2000000})),
        then=refused(500, "", "etcdserver: request is too large", None),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_request(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
