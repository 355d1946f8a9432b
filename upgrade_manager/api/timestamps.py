"""Times as the API writes them: RFC 3339, UTC, whole seconds (metav1.Time)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

#: `datetime.fromisoformat` takes week dates and missing separators too, which RFC 3339 does not.
_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})", re.ASCII)


def format_time(moment: datetime) -> str:
    """`2025-11-21T09:00:00Z`; a fraction is cut off, never rounded up. The moment must be aware."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def parse_time(text: object) -> datetime | None:
    """The moment in UTC, fractions kept; None for whatever is no RFC 3339 time."""
    if not isinstance(text, str):
        return None
    candidate = text.strip().upper()
    if not _RFC_3339.fullmatch(candidate):
        return None
    try:
        return datetime.fromisoformat(candidate).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def seconds_between(start: datetime, end: datetime) -> float:
    """A duration for metrics and messages: never negative, whatever the clock did in between."""
    return max(0.0, (end - start).total_seconds())
