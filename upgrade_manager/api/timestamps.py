"""Times in the format of metav1.Time: RFC 3339, UTC, whole seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime

#: `datetime.fromisoformat` alone accepts more than RFC 3339, such as week dates.
_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})", re.ASCII)

#: English, whatever the locale.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def format_time(moment: datetime) -> str:
    """Format an aware datetime as `2025-11-21T09:00:00Z`; fractions are truncated."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def format_clock(moment: datetime) -> str:
    """Format an aware datetime for messages, such as 13:39 UTC on 26 November; a duration would change the message.

    It has the day, because a message stays in a status: the day of its reader is unknown.
    """
    there = moment.astimezone(UTC)
    return f"{there:%H:%M} UTC on {there.day} {_MONTHS[there.month - 1]}"


def clock_of(text: str) -> str:
    """Return an RFC 3339 time in the form of `format_clock`; the text itself if it is none."""
    moment = parse_time(text)
    return format_clock(moment) if moment else text


def parse_time(text: object) -> datetime | None:
    """Parse an RFC 3339 time; None for anything else."""
    if not isinstance(text, str):
        return None
    candidate = text.strip().upper()
    if not _RFC_3339.fullmatch(candidate):
        return None
    try:
        return datetime.fromisoformat(candidate).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def format_duration(seconds: float) -> str:
    """Format a duration with its two largest units, such as 3 h 12 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def seconds_between(start: datetime, end: datetime) -> float:
    """Return a duration, never negative even if the clock was set back."""
    return max(0.0, (end - start).total_seconds())
