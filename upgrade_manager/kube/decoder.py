"""From the bytes of a watch to its lines and events, however the bytes were cut and however long a line is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_decode = json.JSONDecoder().decode


class WatchEvent(NamedTuple):
    """One event as the server sent it; a tuple, because thousands a second are made."""

    #: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or what a newer server invents.
    type: str
    object: Object


class LineSplitter:
    """Collects chunks and hands out complete lines. No line is too long, and no byte is looked at twice."""

    def __init__(self) -> None:
        #: The pieces of the line that has not ended yet; none holds a line feed.
        self._open: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            if first:
                self._open.append(first)
            return []
        if self._open:
            first = b"".join((*self._open, first))
        last = rest.pop()
        self._open = [last] if last else []
        return [first, *rest]

    def rest(self) -> bytes:
        """What came after the last line feed."""
        return b"".join(self._open)


class Undecodable(Transient):
    """A watch sent a line that is no event: something between us and the server damages or replaces its answers."""


#: No UTF-8 or no JSON, nested deeper than the decoder goes, or something else than an event.
_UNDECODABLE = (ValueError, RecursionError, Undecodable)


def decode_lines(lines: list[bytes]) -> tuple[list[WatchEvent], Undecodable | None]:
    """The events of lines up to the first that is none, and the error for that one. Empty lines mean nothing.

    All lines of a read are decoded as one array, so that their objects share the strings of their keys, which saves
    a fifth of their memory; only if that fails each is looked at by itself.
    """
    lines = [line for line in lines if line]
    try:
        found = _decode(b"".join((b"[", b",".join(lines), b"]")).decode())
        if len(found) == len(lines):
            return [_event(entry) for entry in found], None
    except _UNDECODABLE:
        pass
    return _decode_one_by_one(lines)


def _decode_one_by_one(lines: list[bytes]) -> tuple[list[WatchEvent], Undecodable | None]:
    events: list[WatchEvent] = []
    bad: Undecodable | None = None
    try:
        for line in lines:
            events.append(_event(_decode(line.decode())))  # noqa: PERF401  # those before the bad one are kept
    except _UNDECODABLE as error:
        bad = Undecodable(f"a watch sent a line of {len(lines[len(events)])} bytes that is no event")
        bad.__cause__ = error
    return events, bad


def _event(entry: object) -> WatchEvent:
    if isinstance(entry, dict):
        type_, obj = entry.get("type"), entry.get("object")
        if isinstance(type_, str) and isinstance(obj, dict):
            return WatchEvent(type_, obj)
    raise Undecodable("no type or no object")
