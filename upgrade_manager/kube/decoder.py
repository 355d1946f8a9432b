"""Decodes the bytes of a watch into events, for chunks and lines of any length."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_decode = json.JSONDecoder().decode


class WatchEvent(NamedTuple):
    """One event as the server sent it; a tuple, because thousands are made each second."""

    #: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or a type that a newer server adds.
    type: str
    object: Object


class LineSplitter:
    """Splits chunks into lines of any length and reads each byte once."""

    def __init__(self) -> None:
        #: The pieces of the unfinished line, without line feeds.
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes."""
        first, *lines = chunk.split(b"\n")
        if not lines:
            if first:
                self._pieces.append(first)
            return []
        if self._pieces:
            first = b"".join((*self._pieces, first))
        last = lines.pop()
        self._pieces = [last] if last else []
        return [first, *lines]

    def rest(self) -> bytes:
        """Return the bytes after the last line feed."""
        return b"".join(self._pieces)


class Undecodable(Transient):
    """A line of a watch is not an event: a proxy may have replaced or damaged the response."""


#: Not UTF-8, not JSON, nested too deeply for the decoder, or not an event.
_UNDECODABLE = (ValueError, RecursionError, Undecodable)


def decode_lines(lines: list[bytes]) -> tuple[list[WatchEvent], Undecodable | None]:
    """Return the events up to the first bad line, and the error for that line. Empty lines are skipped.

    All lines of a read are decoded as one array, so that their objects share the strings of their keys, which saves
    a fifth of their memory. Line by line is the fallback.
    """
    lines = [line for line in lines if line]
    try:
        entries = _decode(b"".join((b"[", b",".join(lines), b"]")).decode())
        if len(entries) == len(lines):
            return [_event(entry) for entry in entries], None
    except _UNDECODABLE:
        pass
    return _decode_one_by_one(lines)


def _decode_one_by_one(lines: list[bytes]) -> tuple[list[WatchEvent], Undecodable | None]:
    events: list[WatchEvent] = []
    try:
        for line in lines:
            events.append(_event(_decode(line.decode())))  # noqa: PERF401  # keeps the events before the bad line
    except _UNDECODABLE as cause:
        error = Undecodable(f"a line of {len(lines[len(events)])} bytes in a watch is not an event")
        error.__cause__ = cause
        return events, error
    return events, None


def _event(entry: object) -> WatchEvent:
    if isinstance(entry, dict):
        type_, obj = entry.get("type"), entry.get("object")
        if isinstance(type_, str) and isinstance(obj, dict):
            return WatchEvent(type_, obj)
    raise Undecodable("no type or no object")
