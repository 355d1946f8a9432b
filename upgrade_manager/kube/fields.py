"""Reads fields of objects from other projects; a field that is absent, null or of another type is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Characters of another component's message.
_MAX_EXCERPT = 300


def mapping(obj: object, *path: str) -> Mapping[str, Any]:
    """Return the object at the path."""
    found = value(obj, *path)
    return found if isinstance(found, dict) else {}


def strings(obj: object, *path: str) -> Mapping[str, str]:
    """Return the entries at the path whose values are strings, as of labels."""
    return {key: entry for key, entry in mapping(obj, *path).items() if isinstance(entry, str)}


def items(obj: object, *path: str) -> list[Any]:
    """Return the list at the path."""
    found = value(obj, *path)
    return found if isinstance(found, list) else []


def text(obj: object, *path: str) -> str:
    """Return the string at the path."""
    found = value(obj, *path)
    return found if isinstance(found, str) else ""


def number(obj: object, *path: str) -> int | None:
    """Return the integer at the path."""
    found = value(obj, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def excerpt(obj: object, *path: str) -> str:
    """Return the string at the path for a message: one printable line of limited length, without a full stop."""
    line = one_line(text(obj, *path)[: 2 * _MAX_EXCERPT])
    return line[:_MAX_EXCERPT] + "…" if len(line) > _MAX_EXCERPT else line.rstrip(".")


def one_line(text: str) -> str:
    """Return the text as one printable line.

    Whitespace, control characters, line separators and bidirectional marks become single spaces.
    """
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def is_true(obj: object, *path: str) -> bool:
    """Return True for a boolean that is true."""
    return value(obj, *path) is True


def name(obj: object) -> str:
    """Return the object's name."""
    return text(obj, "metadata", "name")


def qualified_name(obj: object) -> str:
    """Return namespace/name."""
    return f"{text(obj, 'metadata', 'namespace')}/{name(obj)}"


def condition(obj: object, type_: str) -> Mapping[str, Any]:
    """Return the condition of that type."""
    found = (one for one in items(obj, "status", "conditions") if text(one, "type") == type_)
    return mapping(next(found, None))


def value(obj: object, *path: str) -> object:
    """Return whatever is at the path; None if nothing is."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj
