"""Keeps secrets out of log lines, whoever logs them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

REDACTED = "[redacted]"

#: Parts of key names whose values are never shown.
_SECRET_KEY = re.compile(
    r"authorization|token|passw|credential|cookie|api[-_]?key|private[-_]?key|bearer", re.IGNORECASE
)
#: Secrets inside of texts: an authorization header's value, a JSON web token, a PEM key.
_SECRET_TEXT = re.compile(
    r"(?<=\bbearer )[^\s\"',]+|(?<=\bbasic )[a-z0-9+/]{8,}=*|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
#: How deep values are looked into; what lies deeper is not shown at all.
_DEPTH = 6


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace values under suspicious keys, and secrets inside of texts; a structlog processor."""
    return {key: _value(key, value, _DEPTH) for key, value in event.items()}


def _value(key: object, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(key, str) and _SECRET_KEY.search(key):
        return REDACTED
    if isinstance(value, str):
        return _SECRET_TEXT.sub(REDACTED, value)
    return _nested(value, depth - 1)


def _nested(value: Any, depth: int) -> Any:
    if depth < 0:
        return "..."
    if isinstance(value, dict):
        return {key: _value(key, item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_value("", item, depth) for item in value]
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return _SECRET_TEXT.sub(REDACTED, str(value))
