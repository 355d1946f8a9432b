"""The history of a plan beside its events, which expire: the commands show an upgrade of last month like a new one.

report.py and the command `status` show it. The history of a plan that has ended is complete, and stands for its events
and Nodes, which may have changed since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.history import ENDED, blockers_in, rows_of, versions_in
from upgrade_manager.api.names import EVENT_DIGEST, event_digest
from upgrade_manager.api.node_states import state_of
from upgrade_manager.api.phases import TERMINAL
from upgrade_manager.api.timestamps import format_time, parse_time
from upgrade_manager.display.milestones import event_time
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from upgrade_manager.api.history import Row
    from upgrade_manager.kube.objects import Object

#: The data of the history of a plan that has none: it is not begun, or an earlier version has run it.
NO_HISTORY: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A plan, its events and the Nodes, with what the history knows of them."""

    plan: Object
    events: list[Object]
    nodes: Sequence[Object]
    #: True if they are the history's alone.
    is_complete: bool


def remember(
    plan: Object, history: Mapping[str, object], events: Sequence[Object], nodes: Sequence[Object]
) -> Remembered:
    """Add the history to what was read; a complete history replaces it."""
    rows = rows_of(history)
    whole = _with_blockers(plan, history)
    if is_complete(plan, history):
        found, known = [_event(plan, row) for row in rows], [*_nodes(plan, history)]
        return Remembered(plan=whole, events=found, nodes=known, is_complete=True)
    return Remembered(plan=whole, events=[*_joined(plan, rows, events)], nodes=nodes, is_complete=False)


def is_complete(plan: Object, history: Mapping[str, object]) -> bool:
    """Return True if the history has all of the plan's last attempt, up to its end."""
    entries = objects.items(plan, "status", "phaseTransitionTimestamps")
    times = [objects.text(one, "phaseTransitionTimestamp") for one in entries if objects.text(one, "phase") in TERMINAL]
    ends = objects.text(plan, "status", "currentPhase") in TERMINAL
    return ends and bool(times) and history.get(ENDED) == times[-1]


def _with_blockers(plan: Object, history: Mapping[str, object]) -> Object:
    """Return the plan with all blockers that are over; its status keeps a few."""
    status, kept = objects.mapping(plan, "status"), objects.items(plan, "status", "pastBlockers")
    found = [one for one in blockers_in(history) if one not in kept]
    return {**plan, "status": {**status, "pastBlockers": [*found, *kept]}} if found else plan


def _joined(plan: Object, rows: Iterable[Row], events: Sequence[Object]) -> Iterator[Object]:
    """Yield the events, and those rows whose events have expired."""
    digests = {objects.name(event)[-EVENT_DIGEST:] for event in events}
    texts = {(objects.text(event, "reason"), objects.text(event, "message")) for event in events}
    for row in rows:
        event = _event(plan, row)
        if objects.name(event)[-EVENT_DIGEST:] not in digests and (row.reason, row.message) not in texts:
            yield event
    firsts = {(row.reason, row.message): row for row in rows}
    for event in events:
        known = firsts.get((objects.text(event, "reason"), objects.text(event, "message")))
        yield event if known is None else _continued(event, known)


def _continued(event: Object, row: Row) -> Object:
    """Return an event that was created again after an earlier one had expired, from its first time on."""
    begun = parse_time(event.get("firstTimestamp")) or event_time(event)
    if begun is None or begun <= row.first or not row.is_counted:
        return event
    count = max(row.count, objects.number(event, "count") or 1)
    return {**event, "firstTimestamp": format_time(row.first), "count": count}


def _event(plan: Object, row: Row) -> Object:
    """Return the row as the event that it was; a milestone without text has the node's name."""
    id_ = row.id or event_digest(objects.text(plan, "metadata", "uid"), f"{row.reason}/{row.node}")
    return {
        "metadata": {"name": f"{objects.name(plan)}.{id_}", "resourceVersion": ""},
        "type": row.type,
        "reason": row.reason,
        "message": row.message or f"Node {row.node}",
        "firstTimestamp": format_time(row.first),
        "lastTimestamp": format_time(row.last),
        "count": row.count,
    }


def _nodes(plan: Object, history: Mapping[str, object]) -> Iterator[Object]:
    """Yield the nodes as they were at the end: those that are done run the release."""
    release = objects.mapping(plan, "status", "releaseMetadata")
    released, versions = (objects.text(release, "os"), objects.text(release, "kubernetes")), versions_in(history)
    for name, entry in objects.mapping(plan, "status", "nodeUpgradeStatuses").items():
        state = state_of(objects.text(entry, "state"))
        is_done = state is not None and state.upgraded
        os, kubernetes = released if is_done else versions.get(name, ("", ""))
        yield {"metadata": {"name": name}, "status": {"nodeInfo": {"osImage": os, "kubeletVersion": kubernetes}}}
