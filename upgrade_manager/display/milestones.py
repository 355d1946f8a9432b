"""The times of nodes' milestones, by the names of the plan's events.

view.py, report.py and timeline.py read them; nodes/milestones.py decides them in the manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from upgrade_manager.api.attempts import MAX_ATTEMPTS, attempt_of
from upgrade_manager.api.names import EVENT_DIGEST, FIRST_ATTEMPT, event_digest, of_attempt
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects
from upgrade_manager.nodes.milestones import MilestoneReason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from upgrade_manager.kube.objects import Object

#: The times of one node; the API server keeps events for an hour, so each may be absent.
Milestones: TypeAlias = "Mapping[MilestoneReason, datetime]"
#: The milestones of nodes, by attempt and node.
ByAttempt: TypeAlias = "Mapping[int, Mapping[str, Milestones]]"


def latest_milestones(by_attempt: ByAttempt) -> dict[str, Milestones]:
    """Return the milestones of all nodes, each of the last attempt that has it."""
    found = by_attempt.values()
    nodes = dict.fromkeys(name for one in found for name in one)
    return {name: {reason: time for one in found for reason, time in one[name].items()} for name in nodes}


def milestones_by_attempt(plan: Object, events: Sequence[Object]) -> ByAttempt:
    """Return the milestones of all nodes in the plan's status, by attempt, as many as the status records."""
    status = objects.mapping(plan, "status")
    uid, times, last = objects.text(plan, "metadata", "uid"), _first_times(events), attempt_of(status)
    return {
        attempt: {
            name: {
                reason: time
                for reason in MilestoneReason
                if (time := times.get(event_digest(uid, of_attempt(f"{reason}/{name}", attempt)))) is not None
            }
            for name in objects.mapping(status, "nodeUpgradeStatuses")
        }
        for attempt in range(max(FIRST_ATTEMPT, last + 1 - MAX_ATTEMPTS), last + 1)
    }


def event_time(event: Object) -> datetime | None:
    """Return when the event happened last."""
    moments = (
        event.get("lastTimestamp"),
        event.get("eventTime"),
        objects.metadata(event).get("creationTimestamp"),
    )
    return next((time for moment in moments if (time := parse_time(moment)) is not None), None)


def _first_times(events: Sequence[Object]) -> dict[str, datetime]:
    """Return when each event happened first, by the digest at the end of its name."""
    times = {
        objects.name(event)[-EVENT_DIGEST:]: parse_time(event.get("firstTimestamp")) or event_time(event)
        for event in events
    }
    return {digest: time for digest, time in times.items() if time is not None}
