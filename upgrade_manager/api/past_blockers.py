"""Blockers that are over, in `status.pastBlockers`: what held an upgrade up, and for how long.

pipeline/status.py records them, because events expire after an hour; display/holdups.py shows them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import Field

from upgrade_manager.api.blockers import continues, read_blockers
from upgrade_manager.api.model import NamedObject
from upgrade_manager.api.timestamps import format_time, parse_time, seconds_between

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from upgrade_manager.api.blockers import Blocker

#: Entries in the status; beyond it the shortest ones are left out.
MAX_PAST = 30
#: Characters of a message.
MAX_TEXT = 200
#: Bytes of all entries, beside those of the blockers that last.
MAX_BYTES = 24_000
#: The fields of Blocker.identity.
_IDENTITY = ("reason", "kind", "namespace", "name", "node")


class PastBlockerStatus(NamedObject, json_schema_extra={"required": ["kind", "name", "reason", "since", "until"]}):
    """Something for which the upgrade has waited longer than it should."""

    node: str = Field(default="", description="Node whose upgrade waited; absent if that was not one node.")
    reason: str = Field(default="", description="Machine-readable reason, as in blockers.")
    message: str = Field(default="", description="Human-readable details, as they were at the end.")
    since: str = Field(
        default="", description="Time at which the wait began, in UTC.", json_schema_extra={"format": "date-time"}
    )
    until: str = Field(
        default="",
        description="Time at which the blocker was cleared, in UTC.",
        json_schema_extra={"format": "date-time"},
    )


def with_ended(
    past: object, before: object, lasting: Iterable[Blocker], *, now: datetime
) -> list[dict[str, Any]] | None:
    """Return the past blockers with those entries of `before` that do not last; None if all of these do."""
    lasting = list(lasting)
    ended = [
        _entry(entry, now)
        for entry in (before if isinstance(before, list) else [])
        if isinstance(entry, dict) and not _lasts(entry, lasting)
    ]
    return _fitting([*(past if isinstance(past, list) else []), *ended]) if ended else None


def _lasts(entry: dict[str, Any], lasting: Iterable[Blocker]) -> bool:
    return any(continues(old, one) for old in read_blockers([entry]) for one in lasting)


def _entry(blocker: dict[str, Any], now: datetime) -> dict[str, Any]:
    kept = {key: blocker[key] for key in (*_IDENTITY, "since") if blocker.get(key)}
    return {**kept, "message": str(blocker.get("message") or "")[:MAX_TEXT], "until": format_time(now)}


def _fitting(entries: list[Any]) -> list[Any]:
    """Leave out the shortest entries until the list fits."""
    while len(entries) > MAX_PAST or len(json.dumps(entries, ensure_ascii=False).encode(errors="replace")) > MAX_BYTES:
        entries.remove(min(entries, key=_seconds))
    return entries


def _seconds(entry: Any) -> float:
    since, until = (parse_time(entry.get(key)) if isinstance(entry, dict) else None for key in ("since", "until"))
    return seconds_between(since, until) if since and until else 0.0
