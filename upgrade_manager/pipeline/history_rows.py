"""The rows of a plan's history as data of its ConfigMap, and which of them give way when they do not fit.

history.py calls it. First the texts of milestones give way, those of the earliest nodes first: their times stay. Then
whole rows: warnings and the ends of blockers, reboots, the other milestones and the settings, each time the oldest one.
Phases, attempts and the end stay.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.history import (
    BLOCKER_CLEARED,
    BLOCKERS,
    NORMAL,
    UPGRADE_CONTINUED,
    UPGRADE_PAUSED,
    WARNING,
    Row,
    blockers_in,
    cleared_text,
    counted_id,
    json_lines,
    node_key,
    ordered,
)
from upgrade_manager.api.node_states import state_of
from upgrade_manager.api.timestamps import parse_time, seconds_between
from upgrade_manager.kube import objects
from upgrade_manager.nodes.milestones import MilestoneReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from upgrade_manager.kube.objects import Object

#: Bytes of the data, without the ConfigMap's metadata and what the end adds: 256 kB in all.
MAX_BYTES = 220_000
#: Bytes of the blockers that are over.
_MAX_BLOCKERS = 40_000
#: Events of one milestone may be so far apart in two processes.
_SAME = timedelta(minutes=10)
ATTEMPT_BEGAN = "AttemptBegan"
_KEPT = frozenset({"PhaseTransition", "PhaseCompleted", "UpgradeSucceeded", "UpgradeFailed", ATTEMPT_BEGAN})
_PAUSES = frozenset({UPGRADE_PAUSED, UPGRADE_CONTINUED})


def data_of(rows: Iterable[Row], blockers: Iterable[Object]) -> dict[str, str]:
    """Return the rows and the blockers as data of the ConfigMap."""
    groups: dict[str, list[str]] = {}
    for row in ordered(rows):
        groups.setdefault(row.key, []).append(row.line())
    data = {key: "".join(f"{line}\n" for line in lines) for key, lines in sorted(groups.items())}
    return {**data, BLOCKERS: json_lines(blockers)}


def fitting(rows: Mapping[str, Row], blockers: list[Object]) -> tuple[dict[str, Row], list[Object]]:
    """Return the rows and the blockers that fit; the shortest blockers give way first."""
    kept = sorted(blockers, key=_seconds, reverse=True)
    while len(json_lines(kept).encode(errors="replace")) > _MAX_BLOCKERS:
        kept.pop()
    blockers = [one for one in blockers if one in kept]
    found = dict(rows)
    left = MAX_BYTES - sum(map(_size, found.values())) - sum(len(node_key(name)) + 8 for name in _nodes(found))
    for key, row in _giving_way(rows):
        if left >= 0:
            break
        short = replace(found[key], id="", message="") if row is None else row
        if row is None and found[key].id:
            left += _size(found[key]) - _size(short)
            found[key] = short
        elif row is not None:
            left += _size(found.pop(key))
    return found, blockers


def _giving_way(rows: Mapping[str, Row]) -> Iterator[tuple[str, Row | None]]:
    """Yield the keys of the rows in the order in which they give way; with None the text alone."""
    oldest = sorted(rows.items(), key=lambda pair: pair[1].first)
    yield from ((key, None) for key, row in oldest if node_key(row.node) and row.type == NORMAL)
    ranked = [(rank, key, row) for key, row in oldest if (rank := _rank(row))]
    yield from ((key, row) for _, key, row in sorted(ranked, key=lambda one: one[0]))


def _rank(row: Row) -> int:
    """Return the place of the row among those that give way; 0 for one that stays."""
    if row.reason in _KEPT:
        return 0
    if row.reason in _PAUSES:
        return 6
    if row.type != NORMAL or row.reason == BLOCKER_CLEARED:
        return 1
    if row.node:
        return 2 if row.reason == MilestoneReason.NODE_REBOOTING else 4 if row.reason == _LAST else 3
    return 5


_LAST = MilestoneReason.NODE_UPGRADED


def _nodes(rows: Mapping[str, Row]) -> set[str]:
    return {row.node for row in rows.values()}


def _size(row: Row) -> int:
    return len(row.line().encode(errors="replace")) + 1


def same(one: Row, other: Row) -> bool:
    """Return True for two rows of one milestone, one of which has lost its text."""
    is_short = bool(one.node) and not (one.id and other.id)
    is_equal = (one.node, one.reason) == (other.node, other.reason)
    return is_short and is_equal and abs(one.first - other.first) <= _SAME


def blockers_over(stored: Mapping[str, str], plan: Object) -> list[Object]:
    """Return the blockers that are over: those of the ConfigMap, and those of the status, which keeps a few."""
    found = {_identity(one): one for one in blockers_in(stored)}
    found |= {_identity(one): one for one in objects.items(plan, "status", "pastBlockers") if isinstance(one, dict)}
    return sorted(found.values(), key=lambda one: (str(one.get("since")), _identity(one)))


def derived(plan: Object, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of attempts, and of blockers whose events an earlier process did not add before it died."""
    known = list(rows)
    for entry in objects.items(plan, "status", "attempts"):
        begin, number = parse_time(objects.value(entry, "begin")), objects.number(entry, "attempt") or 0
        if begin is not None:
            yield _row(f"00.attempt-{number:02}", ATTEMPT_BEGAN, f"Attempt {number} begins", begin)
    for entry in objects.items(plan, "status", "pastBlockers"):
        yield from _of_blocker(plan, entry, known)


def _of_blocker(plan: Object, entry: Object, known: list[Row]) -> Iterator[Row]:
    since, until = (parse_time(objects.value(entry, key)) for key in ("since", "until"))
    reason, message = (objects.text(entry, key) for key in ("reason", "message"))
    kind, namespace, name = (objects.text(entry, key) for key in ("kind", "namespace", "name"))
    if since is None or until is None or reason in {"", BlockerReason.NODE_PAUSED}:
        # The pause of a node and its end are milestones of the node.
        return
    if not any(row.reason == reason and row.message.startswith(message[:150]) for row in known):
        id_ = counted_id(objects.uid(plan), WARNING, reason, message)
        yield _row(id_, reason, message, since, type_=WARNING)
    text = cleared_text(kind, namespace, name, reason)
    if not any(row.message == text and row.last >= since for row in known):
        yield _row(counted_id(objects.uid(plan), NORMAL, BLOCKER_CLEARED, text), BLOCKER_CLEARED, text, until)


def _row(id_: str, reason: str, message: str, at: Any, *, type_: str = NORMAL) -> Row:
    return Row(id=id_, first=at, last=at, count=1, type=type_, reason=reason, message=message)


def versions_of(plan: Object, nodes: Iterable[Object]) -> str:
    """Return, as JSON lines, what nodes run that the upgrade has not reached: each pair of versions with its nodes."""
    states = {name: state_of(objects.text(entry, "state")) for name, entry in _statuses(plan).items()}
    pairs: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        state = states.get(objects.name(node))
        if objects.name(node) in states and (state is None or not state.upgraded):
            info = objects.mapping(node, "status", "nodeInfo")
            pair = (objects.text(info, "osImage"), objects.text(info, "kubeletVersion"))
            pairs.setdefault(pair, []).append(objects.name(node))
    found = ({"os": os, "kubernetes": kubelet, "nodes": sorted(names)} for (os, kubelet), names in pairs.items())
    return json_lines(found)


def _statuses(plan: Object) -> Mapping[str, Any]:
    return objects.mapping(plan, "status", "nodeUpgradeStatuses")


def _identity(entry: Object) -> tuple[str, ...]:
    return tuple(str(entry.get(key) or "") for key in ("reason", "kind", "namespace", "name", "node", "since"))


def _seconds(entry: Object) -> float:
    since, until = (parse_time(entry.get(key)) for key in ("since", "until"))
    return seconds_between(since, until) if since and until else 0.0
