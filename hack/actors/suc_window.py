"""The maintenance window of a Plan: days of the week, and times of day in a time zone."""

from __future__ import annotations

from datetime import datetime, time
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")


class WindowError(ValueError):
    """An invalid window."""


def is_open(window: Object, now: datetime) -> bool:
    """Report whether the window is open. Raises WindowError."""
    try:
        local = now.astimezone(ZoneInfo(window.get("timeZone") or "UTC"))
        start = _time(window.get("startTime") or "00:00")
        end = _time(window.get("endTime") or "23:59:59")
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise WindowError(str(error)) from error
    days = {_day(day) for day in window.get("days") or ()}
    if days and local.weekday() not in days:
        return False
    clock = local.time().replace(tzinfo=None)
    return start <= clock <= end if start <= end else clock >= start or clock <= end


def _day(text: str) -> int:
    if text.isdecimal():
        return (int(text) - 1) % 7
    try:
        return _DAYS.index(text[:2].lower())
    except ValueError as error:
        raise WindowError(f"no such day: {text}") from error


def _time(text: str) -> time:
    for form in ("%H:%M:%S", "%H:%M", "%I:%M%p", "%I:%M %p", "%I%p"):
        try:
            return datetime.strptime(text, form).time()  # noqa: DTZ007  # a time of the day has no zone yet
        except ValueError:
            continue
    raise ValueError(f"no time of the day: {text}")
