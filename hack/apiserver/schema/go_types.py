"""The Go types of the built-in kinds, read from gotypes.json, which is derived from k8s.io/api v0.35.4.

A type is text: a leaf such as `string` or `time`, `[]T`, `map[string]T`, `*T`, `or T` for a T or another JSON value,
`any` for a value that is not decoded, or the name of a struct. A field's type may be followed by `!` when Go writes the
field even if it is empty, by `~` when Go leaves an empty struct out, and by the merge key of a list: ` key`, or
` +` for a set.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE = Path(__file__).with_name("gotypes.json")

Form = Literal["struct", "list", "map", "leaf", "any", "loose"]


@dataclass(slots=True, kw_only=True, eq=False)
class Type:
    """One Go type; its fields are added later, since structs may contain themselves."""

    form: Form
    #: The name in Go's messages.
    name: str
    #: The name of a struct in the tables.
    key: str = ""
    #: The kind of a leaf.
    leaf: str = ""
    #: The element type of lists, maps and `or`.
    item: Type | None = None
    fields: dict[str, Field] = field(default_factory=dict)
    #: The fields that Go writes even when they are empty.
    shown: tuple[Field, ...] = ()

    def empty(self) -> Any:
        """Return Go's encoding of the zero value."""
        if self.form == "struct":
            return {field.name: field.empty() for field in self.shown}
        return _EMPTY.get(self.leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct."""

    name: str
    type: Type
    pointer: bool
    #: True if Go omits the field when it is empty.
    droppable: bool
    #: The merge key of a list in strategic merge patches; `+` for a set, empty for a list that is replaced.
    merge_key: str

    def empty(self) -> Any:
        """Return Go's encoding of the field's zero value."""
        return None if self.pointer else self.type.empty()


_EMPTY: Mapping[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}
_LEAVES = frozenset([*_EMPTY, "bytes", "time", "microtime", "quantity", "port"])


class _Types:
    """Creates each type once."""

    def __init__(self) -> None:
        table = json.loads(TABLE.read_text())
        self.kinds: dict[str, str] = table["kinds"]
        self._texts: dict[str, Any] = table["types"]
        self._made: dict[str, Type] = {}

    def make(self, text: str) -> Type:
        made = self._made.get(text)
        if made is not None:
            return made
        for prefix, form, name in (("[]", "list", "[]"), ("map[string]", "map", "map[string]"), ("or ", "loose", "")):
            if text.startswith(prefix):
                item = self.make(text.removeprefix(prefix))
                made = Type(form=form, name=name + item.name, item=item)  # type: ignore[arg-type]
                self._made[text] = made
                return made
        self._made[text] = made = self._named(text)
        return made

    def _named(self, text: str) -> Type:
        if text == "any":
            return Type(form="any", name="any")
        if text in _LEAVES:
            return Type(form="leaf", name=text, leaf=text)
        known = self._texts[text]
        name = "v1." + text.partition(".")[2]
        made = self._made[text] = Type(form="struct", name=name, key=text)
        made.fields.update({key: self._field(key, value) for key, value in known.items()})
        made.shown = tuple(found for key, found in made.fields.items() if _is_shown(found, known[key]))
        return made

    def _field(self, name: str, text: str) -> Field:
        kind, _, merge_key = text.partition(" ") if not text.lstrip("*").startswith("or ") else (text, "", "")
        plain = kind.rstrip("!~")
        pointer = plain.startswith("*")
        made = self.make(plain.lstrip("*"))
        droppable = not pointer and "!" not in kind and made.form in {"leaf", "list", "map"}
        return Field(name=name, type=made, pointer=pointer, droppable=droppable, merge_key=merge_key)


def _is_shown(found: Field, text: str) -> bool:
    """Return whether Go writes an empty value: structs, and times as they are structs."""
    if "~" in text or (found.name == "metadata" and found.type.name == "v1.ObjectMeta"):
        return False
    whole = found.type.form == "struct" or found.type.leaf in {"time", "microtime"}
    return "!" in text or (whole and not found.pointer)


@cache
def _types() -> _Types:
    return _Types()


@cache
def type_of(resource: str) -> Type | None:
    """Return the type of a built-in kind, by plural.group; None for an unknown kind."""
    types = _types()
    name = types.kinds.get(resource)
    return types.make(name) if name else None


@cache
def delete_options_type() -> Type:
    """Return the type of DeleteOptions."""
    return _types().make("meta.DeleteOptions")


@cache
def object_meta() -> Type:
    """Return the type of ObjectMeta."""
    return _types().make("meta.ObjectMeta")
