"""Errors with the Status objects and messages of kube-apiserver, on which clients match."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema import field_error
from upgrade_manager.kube.resources import Resource
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.apiserver.schema.field_error import FieldError

JSON_HEADERS = {"content-type": "application/json"}


class StatusError(Exception):
    """The error response to a request, with the fields of its Status object."""

    def __init__(
        self,
        *,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """Return the Status object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    def response(self) -> Response:
        """Return the HTTP response; retryAfterSeconds is also sent as a header."""
        headers = JSON_HEADERS | self.headers
        retry_after = (self.details or {}).get("retryAfterSeconds")
        if retry_after:
            headers["retry-after"] = str(retry_after)
        return Response(status=self.code, headers=headers, body=json.dumps(self.body()).encode())


def about(resource: Resource, name: str) -> dict[str, Any]:
    """Return the `details` that name an object; `kind` is the plural."""
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Resource, name: str) -> StatusError:
    """Return the error for a missing object."""
    return StatusError(
        code=404, reason="NotFound", message=f'{resource.name} "{name}" not found', details=about(resource, name)
    )


class NoSuchPathError(StatusError):
    """The 404 without a Status, for unknown paths."""

    def response(self) -> Response:
        """Return a plain text response."""
        headers = {"content-type": "text/plain; charset=utf-8"}
        return Response(status=self.code, headers=headers, body=f"{self.message}\n".encode())


def no_such_path() -> StatusError:
    """Return the error for an unknown path."""
    return NoSuchPathError(code=404, reason="NotFound", message="404 page not found")


def no_such_resource() -> StatusError:
    """Return the error for an unknown kind or subresource in a built-in group."""
    message = "the server could not find the requested resource"
    return StatusError(code=404, reason="NotFound", message=message, details={})


def not_acceptable(message: str) -> StatusError:
    """Return the error for an unsupported Accept header."""
    return StatusError(code=406, reason="NotAcceptable", message=message)


def invalid_patch(shown: str, message: str) -> StatusError:
    """Return the error for a patched object that cannot be decoded; `shown` is the object, or the patch."""
    error = field_error.invalid("patch", shown, message)
    message = f' "" is invalid: {error}'
    return StatusError(code=422, reason="Invalid", message=message, details={"causes": [error.cause()]})


def already_exists(resource: Resource, name: str, *, deleting: bool = False) -> StatusError:
    """Return the error for a name that exists, perhaps with its deletion pending."""
    message = f'{"object is being deleted: " if deleting else ""}{resource.name} "{name}" already exists'
    return StatusError(code=409, reason="AlreadyExists", message=message, details=about(resource, name))


def conflict(resource: Resource, name: str, why: str) -> StatusError:
    """Return the error for a request that assumes another state of the object."""
    message = f'Operation cannot be fulfilled on {resource.name} "{name}": {why}'
    return StatusError(code=409, reason="Conflict", message=message, details=about(resource, name))


def modified(resource: Resource, name: str) -> StatusError:
    """Return the conflict for an outdated resourceVersion."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def bad_request(message: str) -> StatusError:
    """Return the error for a malformed request."""
    return StatusError(code=400, reason="BadRequest", message=message)


def forbidden(resource: Resource, name: str, why: str, *, causes: list[dict[str, str]] | None = None) -> StatusError:
    """Return the error for a request that authorization or admission denies."""
    subject = f'{resource.name} "{name}"' if name else resource.name
    details = about(resource, name) | ({"causes": causes} if causes else {})
    return StatusError(code=403, reason="Forbidden", message=f"{subject} is forbidden: {why}", details=details)


def unauthorized() -> StatusError:
    """Return the error for unknown credentials."""
    return StatusError(code=401, reason="Unauthorized", message="Unauthorized")


def method_not_allowed() -> StatusError:
    """Return the error for a verb that the kind does not support."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(code=405, reason="MethodNotAllowed", message=message, details={})


def unsupported_media_type(accepted: tuple[str, ...]) -> StatusError:
    """Return the error for an unsupported body format: CBOR, server-side apply."""
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return StatusError(code=415, reason="UnsupportedMediaType", message=message)


def invalid(resource: Resource, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the error for an object that fails validation."""
    causes = [error.cause() for error in errors]
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = {"name": name, "group": resource.group, "kind": resource.kind, "causes": causes}
    details = {key: value for key, value in details.items() if value}
    message = f'{kind} "{name}" is invalid: {field_error.aggregate(errors)}'
    return StatusError(code=422, reason="Invalid", message=message, details=details)


def invalid_options(kind: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the error for invalid options of a kind."""
    return invalid(Resource(group="meta.k8s.io", version="v1", plural="options", kind=kind), "", errors)


def not_a_version(text: str) -> str:
    """Return the message for a resourceVersion that is not a number."""
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def expired(message: str) -> StatusError:
    """Return the error for an expired resourceVersion or continue token."""
    return StatusError(code=410, reason="Expired", message=message)


def too_large_version(requested: int, current: int) -> StatusError:
    """Return the error for a resourceVersion in the future."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return StatusError(
        code=504,
        reason="Timeout",
        message=f"Timeout: Too large resource version: {requested}, current: {current}",
        details={"causes": causes, "retryAfterSeconds": 1},
    )


def internal(message: str) -> StatusError:
    """Return the error for a failure of the server or of a backend."""
    return StatusError(
        code=500,
        reason="InternalError",
        message=f"Internal error occurred: {message}",
        details={"causes": [{"message": message}]},
    )


def warning_header(warnings: Sequence[str]) -> dict[str, str]:
    """Return the header of warnings, if there are any."""
    texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings]
    return {"warning": ", ".join(f'299 - "{text}"' for text in texts)} if texts else {}
