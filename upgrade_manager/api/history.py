"""The history of a plan: rows of text in a ConfigMap, which stay when events have expired and Jobs are removed.

pipeline/history.py writes it, display/history.py reads it. Each row has what an event has, in one readable line:

    2026-01-01T00:05:00Z Normal NodeDraining 13.n20-6dc4a1b2c3d4e5f6 Node node-0: draining begins
    2026-01-01T00:05:00Z/2026-01-01T00:25:00Z*3 Warning DrainFailing u-6dc4a1b2c3d4e5f6 Pod default/shop-0: …

The rows of a node have a separate key, so that a write sends those of the nodes that have moved. A row whose text
has given way to the bound has its time and its reason alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.names import event_digest
from upgrade_manager.api.text import namespaced_name, one_line
from upgrade_manager.api.timestamps import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

#: Keys of the ConfigMap: rows of type Normal and Warning, those of one node, blockers that are over and the versions of
#: nodes at the end as JSON lines, and the time of the end, once the history is complete.
UPGRADE, WARNINGS, NODE, BLOCKERS, VERSIONS, ENDED = "upgrade", "warnings", "node.", "blockers", "versions", "ended"
#: Characters of a ConfigMap's key.
_MAX_KEY = 253
NORMAL, WARNING = "Normal", "Warning"
#: Reasons of events that the history keeps apart.
UPGRADE_PAUSED, UPGRADE_CONTINUED, BLOCKER_CLEARED = "UpgradePaused", "UpgradeContinued", "BlockerCleared"
#: The begin of the id of a row that is counted, because its event has no unique name.
_COUNTED = "u-"
_ROW = re.compile(
    r"(?P<first>\S+Z)(?:/(?P<last>\S+Z)\*(?P<count>\d{1,9}))? "
    r"(?P<type>Normal|Warning) (?P<reason>\S+) (?P<id>\S+) (?P<text>.*)"
)
_SHORT = re.compile(r"(?P<first>\S+Z) (?P<reason>\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Something that has happened."""

    #: The end of its event's name, which sorts the rows of one second; empty for a row without text.
    id: str
    first: datetime
    last: datetime
    count: int
    type: str
    reason: str
    message: str
    #: The node whose milestone it is; empty otherwise.
    node: str = ""

    @property
    def is_counted(self) -> bool:
        """True if it may happen again, with the same text."""
        return self.id.startswith(_COUNTED)

    @property
    def key(self) -> str:
        """The key of the ConfigMap in which it stands."""
        return node_key(self.node) or (WARNINGS if self.type == WARNING else UPGRADE)

    def line(self) -> str:
        """Return the row as text."""
        if not self.id:
            return f"{format_time(self.first)} {self.reason}"
        last = f"/{format_time(self.last)}*{self.count}" if self.count > 1 else ""
        return f"{format_time(self.first)}{last} {self.type} {self.reason} {self.id} {one_line(self.message)}"


def node_key(node: str) -> str:
    """Return the key of a node's rows; empty for a name that is too long, and without a node."""
    return NODE + node if node and len(node) <= _MAX_KEY - len(NODE) else ""


def counted_id(uid: str, type_: str, reason: str, message: str) -> str:
    """Return the id of a row whose event has no unique name."""
    return _COUNTED + event_digest(uid, f"{type_}/{reason}/{message}")


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in the order of their begins."""
    return sorted(rows, key=lambda row: (row.first, row.id))


def rows_of(data: Mapping[str, object]) -> list[Row]:
    """Return the rows of a ConfigMap's data, in the order of their begins; lines that are none are left out."""
    return ordered(row for key, text in data.items() if isinstance(text, str) for row in _rows(key, text))


def _rows(key: str, text: str) -> Iterator[Row]:
    node = key.removeprefix(NODE) if key.startswith(NODE) else ""
    if not node and key not in {UPGRADE, WARNINGS}:
        return
    for line in text.splitlines():
        row = _row(line, node)
        if row is not None:
            yield row


def _row(line: str, node: str) -> Row | None:
    found = _ROW.fullmatch(line) or _SHORT.fullmatch(line)
    parts = found.groupdict() if found is not None else {}
    first = parse_time(parts.get("first"))
    if first is None:
        return None
    return Row(
        id=parts.get("id") or "",
        first=first,
        last=parse_time(parts.get("last")) or first,
        count=int(parts.get("count") or 1),
        type=parts.get("type") or NORMAL,
        reason=parts["reason"] or "",
        message=parts.get("text") or "",
        node=node,
    )


def blockers_in(data: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return the blockers that are over, in the form of `status.pastBlockers`."""
    return [*_json_lines(data.get(BLOCKERS))]


def versions_in(data: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """Return operating system and Kubernetes of the nodes that the upgrade had not reached at its end."""
    found: dict[str, tuple[str, str]] = {}
    for entry in _json_lines(data.get(VERSIONS)):
        names = entry.get("nodes")
        pair = (str(entry.get("os") or ""), str(entry.get("kubernetes") or ""))
        found |= {name: pair for name in (names if isinstance(names, list) else []) if isinstance(name, str)}
    return found


def json_lines(values: Iterable[object]) -> str:
    """Return the values as lines of JSON."""
    lines = (json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True) for value in values)
    return "".join(f"{line}\n" for line in lines)


def _json_lines(text: object) -> Iterator[dict[str, Any]]:
    for line in text.splitlines() if isinstance(text, str) else ():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def cleared_text(kind: str, namespace: str, name: str, reason: str) -> str:
    """Return the message of the event at the end of a blocker; display/cleared.py reads it."""
    return f"{kind} {namespaced_name(namespace, name)}: {reason} is cleared"
