"""Texts for people: one line, of bounded length, and lists of names that stay short."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Characters of a condition's or event's message, unless stated otherwise.
MESSAGE_LIMIT = 1000
#: Names that a list shows.
MAX_NAMES = 10
#: The remarks after the count of nodes in a success's message.
_REMARKS = re.compile(r"\([0-9]+ nodes?\)\. (.+)")


def one_line(text: str) -> str:
    """Return the text as one printable line.

    Whitespace, control characters, line separators and bidirectional marks become single spaces.
    """
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(text.split())


def bounded_line(text: str, *, limit: int = MESSAGE_LIMIT) -> str:
    """Return the text as one printable line of at most `limit` characters, for conditions and events."""
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def name_list(names: Sequence[str]) -> str:
    """Return the names, shortened to MAX_NAMES."""
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def namespaced_name(namespace: str, name: str) -> str:
    """Return namespace/name, for an object without a namespace its name."""
    return "/".join(filter(None, (namespace, name)))


def success_message(upgraded: str, *, nodes: int, remarks: str) -> str:
    """Return the final message of Progressing; `remarks` has what users have to do about what was not settled."""
    text = f"{upgraded} ({nodes} node{'s' if nodes != 1 else ''})"
    return f"{text}. {remarks}" if remarks else text


def success_remarks(message: str) -> str:
    """Return the remarks in a message of `success_message`, for displays; empty without any."""
    found = _REMARKS.search(message)
    return found[1] if found else ""
