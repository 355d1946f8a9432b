"""Times as `kubectl get` shows them: 5s, 3m20s, 4h, 12d."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

#: Limit in seconds, the larger unit and the smaller one, if shown. Beyond the last limit only years are shown.
_STEPS = (
    (2 * _MINUTE, (1, "s"), None),
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def age(timestamp: object, now: datetime) -> str:
    """Return how long ago an RFC 3339 time was; `<unknown>` without one."""
    if not timestamp:
        return "<unknown>"
    try:
        moment = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return "<invalid>"
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return human_duration(int((now - moment).total_seconds()))


def human_duration(seconds: int) -> str:
    """Return a duration in at most two units, as apimachinery's HumanDuration; -1 counts as 0."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    for limit, (size, unit), below in _STEPS:
        if seconds >= limit:
            continue
        count, rest = divmod(seconds, size)
        smaller = rest // below[0] if below else 0
        return f"{count}{unit}" + (f"{smaller}{below[1]}" if below and smaller else "")
    return f"{seconds // _YEAR}y"
