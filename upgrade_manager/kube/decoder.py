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


def decode_event(line: bytes) -> WatchEvent:
    """The event of a line. Raises Undecodable, which shows the line's length but not its content."""
    try:
        event = _decode(line.decode())
        decoded = WatchEvent(event["type"], event["object"])
    except (ValueError, KeyError, TypeError) as error:
        raise Undecodable(f"a watch sent a line of {len(line)} bytes that is no event") from error
    if not isinstance(decoded.object, dict):
        raise Undecodable(f"a watch sent an event of type {decoded.type} without an object")
    return decoded


def decode_lines(lines: list[bytes]) -> tuple[list[WatchEvent], Undecodable | None]:
    """The events of lines up to the first that is none, and the error for that one. Empty lines mean nothing."""
    events: list[WatchEvent] = []
    try:
        events.extend(decode_event(line) for line in lines if line)
    except Undecodable as error:
        return events, error
    return events, None
