"""Attempts of a plan: a user raises `spec.attempt` by one after a failure, and the plan goes on where it failed.

The reconciler records attempts in the status; the webhook and the command line read them. An absent number means 1. All
functions read raw objects, for commands without pydantic; status.py has the model.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.names import FIRST_ATTEMPT
from upgrade_manager.api.phases import FAILED
from upgrade_manager.api.text import bounded_line
from upgrade_manager.api.timestamps import format_duration, format_time, parse_time, seconds_between

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

#: For a plan that records no time.
UNKNOWN_TIME = "1970-01-01T00:00:00Z"
#: Entries in the status; beyond it the oldest ones are left out.
MAX_ATTEMPTS = 20


def attempt_of(status: Mapping[str, Any]) -> int:
    """Return the number of the attempt that the manager runs, or has run."""
    return _number(status.get("attempt"))


def requested_attempt(spec: Mapping[str, Any]) -> int:
    """Return the number of the attempt that the user wants."""
    return _number(spec.get("attempt"))


def is_requested(plan: Mapping[str, Any]) -> bool:
    """Return True for a plan that has failed, and whose next attempt the manager has not begun."""
    spec, status = plan.get("spec") or {}, plan.get("status") or {}
    return status.get("currentPhase") == FAILED and requested_attempt(spec) > attempt_of(status)


def retry_command(plan: str) -> str:
    """Return the command that requests the next attempt of a plan."""
    return f"upgrade-manager retry {plan}"


def attempt_began(status: Mapping[str, Any]) -> str:
    """Return the time at which the present attempt began; empty for the first one."""
    attempt = attempt_of(status)
    entries = status.get("attempts") if attempt > FIRST_ATTEMPT else []
    known = [entry for entry in entries or [] if isinstance(entry, dict)]
    return next((str(entry.get("begin")) for entry in known if entry.get("attempt") == attempt), "")


def idle_times(status: Mapping[str, Any]) -> list[tuple[datetime, datetime]]:
    """Return the times between two attempts, in which nothing was done."""
    entries = [entry for entry in status.get("attempts") or [] if isinstance(entry, dict)]
    times = [(parse_time(one.get("end")), parse_time(other.get("begin"))) for one, other in pairwise(entries)]
    return [(end, begin) for end, begin in times if end is not None and begin is not None and end < begin]


def seconds_of_work(status: Mapping[str, Any], begun: datetime, ended: datetime) -> float:
    """Return the seconds between two times, without those between attempts."""
    idle = ((max(begun, end), min(ended, begin)) for end, begin in idle_times(status))
    return seconds_between(begun, ended) - sum(seconds_between(end, begin) for end, begin in idle)


def work_text(status: Mapping[str, Any], now: datetime) -> str:
    """Return how long the upgrade took, without the time between attempts."""
    begun = parse_time(_accepted(status))
    return format_duration(seconds_of_work(status, begun, now) if begun is not None else 0.0)


def with_failed(status: Mapping[str, Any], *, phase: str, node: str, cause: str, now: datetime) -> list[dict[str, Any]]:
    """Return the attempts with the end of the present one, which has failed."""
    end = {
        "end": format_time(now),
        "phase": phase,
        "node": node,
        "cause": bounded_line(cause),
    }
    return _with(status, {key: value for key, value in end.items() if value}, attempt=attempt_of(status))


def with_begun(status: Mapping[str, Any], *, attempt: int, now: datetime) -> list[dict[str, Any]]:
    """Return the attempts with a new one."""
    return _with(status, {"begin": format_time(now)}, attempt=attempt)


def _with(status: Mapping[str, Any], fields: dict[str, Any], *, attempt: int) -> list[dict[str, Any]]:
    known = [entry for entry in status.get("attempts") or [] if isinstance(entry, dict)]
    found = next((entry for entry in known if entry.get("attempt") == attempt), {})
    others = [entry for entry in known if entry is not found]
    begun = {"attempt": attempt, "begin": found.get("begin") or _accepted(status) or UNKNOWN_TIME}
    return [*others, {**begun, **fields}][-MAX_ATTEMPTS:]


def _accepted(status: Mapping[str, Any]) -> str:
    """Return the time of the plan's acceptance, at which the first attempt began."""
    entries = status.get("phaseTransitionTimestamps") or [{}]
    return str(entries[0].get("phaseTransitionTimestamp") or "")


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > FIRST_ATTEMPT else FIRST_ATTEMPT
