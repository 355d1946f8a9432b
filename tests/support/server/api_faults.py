"""API server faults that an upgrade survives."""

from __future__ import annotations

from typing import Any

from hack.faults.rules import (
    Action,
    Cut,
    Duplicate,
    Expire,
    LoseAnswer,
    LoseRequest,
    Match,
    Refuse,
    Rule,
    Stall,
    Thin,
)

WRITES = ("create", "update", "patch", "delete", "deletecollection")
READS = ("get", "list")
_BUSY = {"retry-after": "1"}


def often(action: Action, *verbs: str, share: float = 0.2, **match: Any) -> Rule:
    """Return a rule that applies to a share of those requests."""
    return Rule(match=Match(verbs=verbs, probability=share, **match), action=action)


FAULTS: dict[str, Rule] = {
    "conflicts": often(Refuse(status=409, reason="Conflict"), "patch", share=0.4),
    "429": often(Refuse(status=429, reason="TooManyRequests", headers=_BUSY), *WRITES, *READS, "watch"),
    "500": often(Refuse(status=500, reason="InternalError"), *WRITES, *READS, "watch"),
    "503": often(Refuse(status=503, reason="ServiceUnavailable"), *WRITES, *READS, "watch"),
    "answers lost after the write": often(LoseAnswer(), *WRITES, share=0.3),
    "resets": often(LoseRequest(), *WRITES, *READS, "watch"),
    "watches end": often(Cut(events=3), "watch", share=1),
    "watches are reset": often(Cut(seconds=0.5, clean=False), "watch", share=1),
    "watches are torn": often(Cut(events=2, torn=True, clean=False), "watch", share=1),
    "watches expire": often(Expire(events=2), "watch", share=1),
    "watches are refused with 410": often(Refuse(status=410, reason="Expired"), "watch", share=0.5),
    "watches stall": often(Stall(events=2, seconds=100_000), "watch", share=0.2),
    "no bookmarks": often(Thin(probability=1, types=("BOOKMARK",)), "watch", share=1),
    "events come twice": often(Duplicate(probability=0.5), "watch", share=1),
}
