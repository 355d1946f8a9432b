"""The Go types of the built-in kinds, read from gotypes.json, which was derived from k8s.io/api v0.35.4.

A type is text: a leaf such as `string` or `time`, `[]T`, `map[string]T`, `*T`, `or T` for what may be something else
too, `any` for what is stored unread, or the name of a struct. A field's type may be followed by `!` when Go writes the
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
    """One Go type; structs may contain themselves, so their fields come after them."""

    form: Form
    #: As Go's messages name it.
    name: str
    #: Of a leaf: which one.
    leaf: str = ""
    #: Of a list, a map, and of what may be something else too.
    item: Type | None = None
    fields: dict[str, Field] = field(default_factory=dict)
    #: The fields that Go writes even when they are empty.
    shown: tuple[Field, ...] = ()

    def empty(self) -> Any:
        """What Go writes for a value of the type when nothing is in it."""
        if self.form == "struct":
            return {field.name: field.empty() for field in self.shown}
        return _EMPTY.get(self.leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct."""

    name: str
    type: Type
    pointer: bool
    #: Whether Go leaves the field out when it is empty.
    droppable: bool
    #: The key by which a strategic merge patch joins a list's items; `+` for a set, empty for one that is replaced.
    merge_key: str

    def empty(self) -> Any:
        """What Go writes for the field when nothing is in it."""
        return None if self.pointer else self.type.empty()


_EMPTY: Mapping[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0}
_LEAVES = frozenset([*_EMPTY, "bytes", "time", "microtime", "quantity", "port"])


class _Types:
    """Makes each type once."""

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
        made = self._made[text] = Type(form="struct", name=name)
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
    """Go never takes a struct for empty, nor a time, which is one."""
    if "~" in text or (found.name == "metadata" and found.type.name == "v1.ObjectMeta"):
        return False
    whole = found.type.form == "struct" or found.type.leaf in {"time", "microtime"}
    return "!" in text or (whole and not found.pointer)


@cache
def _types() -> _Types:
    return _Types()


@cache
def type_of(resource: str) -> Type | None:
    """The type of a built-in kind, by plural.group; None when the table does not have it."""
    types = _types()
    name = types.kinds.get(resource)
    return types.make(name) if name else None


@cache
def is_builtin(group: str, kind: str) -> bool:
    """Whether the table has a kind."""
    return f"{group.partition('.')[0] or 'core'}.{kind}" in _types().kinds.values()


@cache
def delete_options_type() -> Type:
    """The type of what comes with a delete."""
    return _types().make("meta.DeleteOptions")


@cache
def object_meta() -> Type:
    """The type of metadata."""
    return _types().make("meta.ObjectMeta")
