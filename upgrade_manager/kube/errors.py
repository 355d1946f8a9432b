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

from typing import Any

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
