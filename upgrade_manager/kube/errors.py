"""Errors of the Kubernetes API, classified by what the caller should do.

    KubeError
    ├── Gone            the resourceVersion or continue token is too old: list again
    ├── Conflict        the server or a webhook refuses the request in the object's present state
    │   └── PreconditionFailed  the object has changed since it was read: decide again
    ├── AlreadyExists   an object of that name exists
    ├── NotFound        the object, its kind or its namespace does not exist
    ├── Throttled       the server is overloaded: wait `retry_after` seconds
    ├── Transient       no response, or a server error: retry with backoff
    └── Terminal        the same request will fail every time
        ├── Invalid     the object breaks its schema or an admission rule
        └── Forbidden   the credentials do not allow it

The class follows from the HTTP status and the `reason` of the Status object, never from its message. A response does
not show whether a 409 is that of a precondition or of a webhook: the caller who set the precondition reads the object
again and raises PreconditionFailed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.objects import Object

#: Reasons of a `Transient` without a response.
REFUSED = "ConnectionRefused"
UNTRUSTED = "UntrustedCertificate"
TIMED_OUT = "RequestTimedOut"

#: Servers use both reasons for the same error, in responses and in watches.
_GONE_REASONS = frozenset({"Expired", "Gone"})
_TOO_LARGE = "ResourceVersionTooLarge"
#: In a cause, or the message, of servers before 1.18.6.
_TOO_LARGE_MESSAGE = "Too large resource version"
#: Seconds, for an overloaded server that sends no Retry-After.
_DEFAULT_RETRY_AFTER = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenObject:
    """The object of a write that failed."""

    kind: str
    namespace: str
    #: Empty for a collection.
    name: str
    #: The verb of the request, such as "create", and the labels of an object to be created.
    verb: str = field(default="", compare=False)
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)


class KubeError(Exception):
    """A failed request; `str()` is for users: the verb, the object and the server's reason."""

    #: None for a failed read.
    written: WrittenObject | None = None

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.details = details or {}


class Gone(KubeError):
    """410, or an ERROR event of a watch with reason Expired or Gone."""


class Conflict(KubeError):
    """409 with reason Conflict: another resourceVersion or uid, or a refusal of an admission webhook."""


class PreconditionFailed(Conflict):
    """A conflict with a change by others, which the caller has verified."""


class AlreadyExists(KubeError):
    """409 with reason AlreadyExists."""


class NotFound(KubeError):
    """404: the object, its kind or its namespace does not exist."""


class Throttled(KubeError):
    """429, or a 5xx with Retry-After."""

    def __init__(self, message: str, *, retry_after: float, status: int = 429, reason: str = "") -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class Transient(KubeError):
    """A 5xx, a 401 (credentials may be renewed), a timeout, or a broken connection."""


class Terminal(KubeError):
    """Any other 4xx."""


class Invalid(Terminal):
    """422 or 400."""


class Forbidden(Terminal):
    """403."""


_BY_STATUS: dict[int, type[KubeError]] = {
    400: Invalid,
    401: Transient,
    403: Forbidden,
    404: NotFound,
    408: Transient,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


def is_refused(error: KubeError) -> bool:
    """Return True if no connection was made, so that the server has not seen the request."""
    return error.reason in {REFUSED, UNTRUSTED}


def policy_refusal(error: KubeError) -> str:
    """Return the refusal of a ValidatingAdmissionPolicy, which names it; "" for any other error.

    Its cause has a message alone: RBAC gives no cause, and a schema gives the field and a reason.
    """
    causes = error.details.get("causes")
    for cause in causes if isinstance(causes, list) else []:
        if isinstance(cause, dict) and cause.keys() == {"message"}:
            return str(cause["message"])
    return ""


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header; None when it is absent or a date."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None


def error_from_response(about: str, status: int, headers: Mapping[str, str], body: bytes) -> KubeError:
    """Return the error for a response of 400 or more; a body that is not a Status object is ignored."""
    return error_from_status(about, _status_object(body), status=status, retry_after=parse_retry_after(headers))


def error_from_status(about: str, obj: Object, *, status: int = 0, retry_after: float | None = None) -> KubeError:
    """Return the error for a Status object, of a response or of a watch's ERROR event.

    `about` names the request; `status` is the HTTP status, or 0 for the object's code.
    """
    code = status or _int(obj.get("code"))
    reason = _str(obj.get("reason"))
    details = obj.get("details") if isinstance(obj.get("details"), dict) else {}
    text = ": ".join(filter(None, (reason, _str(obj.get("message")))))
    message = f"{about}: {code} {text}".rstrip()
    if retry_after is None:
        retry_after = float(_int((details or {}).get("retryAfterSeconds"))) or None
    error = _classify(message, code, reason, retry_after)
    error.details = dict(details or {})
    return error


def is_too_large_resource_version(error: KubeError) -> bool:
    """Return True if the server has not reached the requested resourceVersion; other timeouts show overload.

    The rule is client-go's isTooLargeResourceVersionError.
    """
    causes = error.details.get("causes")
    causes = [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
    if any(cause.get("reason") == _TOO_LARGE for cause in causes):
        return True
    if error.reason != "Timeout":
        return False
    return _TOO_LARGE_MESSAGE in str(error) or any(cause.get("message") == _TOO_LARGE_MESSAGE for cause in causes)


def _classify(message: str, code: int, reason: str, retry_after: float | None) -> KubeError:
    is_server_error = code >= HTTPStatus.INTERNAL_SERVER_ERROR
    if (
        code == HTTPStatus.TOO_MANY_REQUESTS
        or reason == "TooManyRequests"
        or (is_server_error and retry_after is not None)
    ):
        return Throttled(message, retry_after=retry_after or _DEFAULT_RETRY_AFTER, status=code, reason=reason)
    if reason in _GONE_REASONS:
        return Gone(message, status=code, reason=reason)
    if reason == "AlreadyExists":
        return AlreadyExists(message, status=code, reason=reason)
    if code >= HTTPStatus.BAD_REQUEST and not is_server_error:
        return _BY_STATUS.get(code, Terminal)(message, status=code, reason=reason)
    return Transient(message, status=code, reason=reason)


def _status_object(body: bytes) -> Object:
    try:
        obj = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return obj if isinstance(obj, dict) and obj.get("kind") == "Status" else {}


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""
