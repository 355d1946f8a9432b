"""What can go wrong between us and an API server, by what to do about it.

    KubeError
    ├── Gone            the resourceVersion or continue token is too old: list again
    ├── Conflict        someone else wrote first: read again, decide again
    ├── AlreadyExists   an object of that name is there: look at it
    ├── NotFound        there is no such object, kind or namespace
    ├── Throttled       the server asks for patience: wait `retry_after` seconds
    ├── Transient       no answer, or one that may be another next time: try again with backoff
    └── Terminal        the same request will be refused every time
        ├── Invalid     the object breaks its schema or an admission rule
        └── Forbidden   the credentials do not allow it

The class is chosen from the HTTP status and the Status object's `reason`, never from its message.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.objects import Object

#: Reasons of a `Transient` that no server answered, where they make a difference.
REFUSED = "ConnectionRefused"
TIMED_OUT = "NoAnswerInTime"


class KubeError(Exception):
    """Base of all; `str()` is a sentence for users: what was asked of which object, and what came back."""

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.details = details or {}


class Gone(KubeError):
    """410, or in a watch an ERROR event with reason Expired or Gone."""


class Conflict(KubeError):
    """409 with reason Conflict: the resourceVersion or uid of the request is not the object's."""


class AlreadyExists(KubeError):
    """409 with reason AlreadyExists."""


class NotFound(KubeError):
    """404: the object, its kind or its namespace is absent."""


class Throttled(KubeError):
    """429, or a 5xx with Retry-After."""

    def __init__(self, message: str, *, retry_after: float, status: int = 429, reason: str = "") -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class Transient(KubeError):
    """A 5xx, a 401 (credentials may be renewed), a time-out, a reset, no connection at all."""


class Terminal(KubeError):
    """Any other 4xx."""


class Invalid(Terminal):
    """422, or 400: the request itself is wrong."""


class Forbidden(Terminal):
    """403."""


#: Both words are in use for one thing, in answers and in watches.
_GONE_REASONS = frozenset({"Expired", "Gone"})
#: What a server that asks for patience without a number gets, in seconds.
_DEFAULT_PATIENCE = 1.0
_TOO_LARGE = "ResourceVersionTooLarge"

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


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header; None when it is absent or, as an HTTP date is, no whole number."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None


def error_from_answer(about: str, status: int, headers: Mapping[str, str], body: bytes) -> KubeError:
    """The error for a complete answer of 400 or more; the body counts only where it is a Status object."""
    return error_from_status(about, _status_object(body), status=status, patience=retry_after(headers))


def error_from_status(about: str, obj: Object, *, status: int = 0, patience: float | None = None) -> KubeError:
    """The error for a Status object, of an answer or of a watch's ERROR event.

    `about` says what was asked; `status` is the HTTP status where there was one, else the object's code counts.
    """
    code = status or _number(obj.get("code"))
    reason = _text(obj.get("reason"))
    details = obj.get("details") if isinstance(obj.get("details"), dict) else {}
    said = ": ".join(filter(None, (reason, _text(obj.get("message")))))
    message = f"{about}: {code} {said}".rstrip()
    if patience is None:
        patience = float(_number((details or {}).get("retryAfterSeconds"))) or None
    error = _classify(message, code, reason, patience)
    error.details = dict(details or {})
    return error


def is_too_large(error: KubeError) -> bool:
    """Whether the server says that it has not reached the resourceVersion that was asked for."""
    causes = error.details.get("causes")
    if not isinstance(causes, list):
        return False
    return any(isinstance(cause, dict) and cause.get("reason") == _TOO_LARGE for cause in causes)


def _classify(message: str, code: int, reason: str, patience: float | None) -> KubeError:
    if (
        code == HTTPStatus.TOO_MANY_REQUESTS
        or reason == "TooManyRequests"
        or (code >= HTTPStatus.INTERNAL_SERVER_ERROR and patience is not None)
    ):
        return Throttled(message, retry_after=patience or _DEFAULT_PATIENCE, status=code, reason=reason)
    if reason in _GONE_REASONS:
        return Gone(message, status=code, reason=reason)
    if reason == "AlreadyExists":
        return AlreadyExists(message, status=code, reason=reason)
    if HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return _BY_STATUS.get(code, Terminal)(message, status=code, reason=reason)
    return Transient(message, status=code, reason=reason)


def _status_object(body: bytes) -> Object:
    try:
        obj = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return obj if isinstance(obj, dict) and obj.get("kind") == "Status" else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
