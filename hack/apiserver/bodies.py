"""The bodies of write requests, in JSON, or in the protobuf that kubectl's typed commands send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.json_text import JsonError, json_type, read
from hack.apiserver.schema import protobuf
from hack.apiserver.schema.go_types import delete_options_type, type_of
from hack.apiserver.schema.protobuf import MalformedError, UnknownFieldError
from hack.apiserver.status import bad_request, unsupported_media_type

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row
    from hack.apiserver.schema.go_types import Type
    from hack.apiserver.status import StatusError
    from upgrade_manager.kube.transport import Request

JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"
#: The first bytes of a body in protobuf; a runtime.Unknown follows.
_MAGIC = b"k8s\x00"


def media_type(request: Request) -> str:
    """Return the format of a request's body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip()


def object_body(request: Request, row: Row) -> Object:
    """Return the object in a body. Raises StatusError 400 or 415."""
    try:
        body = _object(request, row)
    except (JsonError, MalformedError) as error:
        raise _unrecognized(row, _unreadable(error)) from error
    if body is not None and not isinstance(body, dict):
        raise _unrecognized(row, f"cannot unmarshal {json_type(body)}")
    body = body or {}
    if row.custom and not body.get("kind"):
        raise _unrecognized(row, "Object 'Kind' is missing")
    return body


def delete_options_body(request: Request) -> Object:
    """Return the DeleteOptions in a body. Raises StatusError 400 or 415."""
    if not request.body.strip():
        return {}
    try:
        body = _decoded(request.body, delete_options_type()) if _is_protobuf(request) else read(request.body)
    except (JsonError, MalformedError) as error:
        raise bad_request(_unreadable(error)) from error
    if not isinstance(body, dict) or body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request("the body of a delete must be DeleteOptions")
    return body


def _object(request: Request, row: Row) -> Any:
    kind = None if row.custom else type_of(row.resource.name)
    if _is_protobuf(request) and kind is not None:
        return _decoded(request.body, kind)
    if media_type(request) != JSON:
        raise unsupported_media_type((JSON,))
    return read(request.body)


def _is_protobuf(request: Request) -> bool:
    return media_type(request) == PROTOBUF


def _decoded(body: bytes, kind: Type) -> Object:
    """Return an object in protobuf; only the head of one of another kind.

    Raises MalformedError, or StatusError 415 for fields that kubectl's commands do not set.
    """
    if not body.startswith(_MAGIC):
        raise MalformedError("provided data does not appear to be a protobuf message")
    unknown = dict(protobuf.fields(body[len(_MAGIC) :]))
    types = dict(protobuf.fields(protobuf.nested(unknown.get(1, b""))))
    head = {"apiVersion": protobuf.text(types.get(1, b"")), "kind": protobuf.text(types.get(2, b""))}
    if head["kind"] != kind.name.removeprefix("v1."):
        return head
    try:
        return head | protobuf.message(protobuf.nested(unknown.get(2, b"")), kind)
    except UnknownFieldError as error:
        raise unsupported_media_type((JSON,)) from error


def _unreadable(error: JsonError | MalformedError) -> str:
    return f"couldn't get version/kind; json parse error: {error}" if isinstance(error, JsonError) else str(error)


def _unrecognized(row: Row, message: str) -> StatusError:
    return bad_request(f"the object provided is unrecognized (must be of type {row.resource.kind}): {message}")
