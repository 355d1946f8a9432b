"""Times as Go parses and formats them: UTC, in seconds or microseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime

#: Valid dates without a calendar check: days up to 28.
_MOMENT = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_SECONDS = re.compile(_MOMENT + "Z")
_MICROSECONDS = re.compile(_MOMENT + r"\.\d{6}Z")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


class TimeError(ValueError):
    """The text is not a time."""


def rewritten(text: str, *, fine: bool) -> str:
    """Return the time as it is stored; `fine` for microseconds. Raises TimeError."""
    if (_MICROSECONDS if fine else _SECONDS).fullmatch(text):
        return text
    if not _RFC3339.fullmatch(text):
        raise TimeError(f'parsing time "{text}": not in RFC 3339')
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text)).astimezone(UTC)
    except ValueError as error:
        part = str(error).partition(" ")[0]
        raise TimeError(f'parsing time "{text}": {part} out of range') from error
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if fine else "%Y-%m-%dT%H:%M:%SZ")
