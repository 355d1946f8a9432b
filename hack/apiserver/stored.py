"""One immutable state of one object, with cached encodings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.apiserver.admission import Object

#: Objects are trees: they come from JSON.
_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


class Stored:
    """An object at one revision; immutable, including nested values."""

    __slots__ = ("_forms", "object", "revision")

    def __init__(self, obj: Object, revision: int) -> None:
        self.object = obj
        self.revision = revision
        #: Encoded forms by their keys; watches and lists share them.
        self._forms: dict[str, bytes] = {}

    @property
    def namespace(self) -> str:
        """The namespace; empty for cluster-scoped objects."""
        return str(self.object["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.object["metadata"]["name"])

    def encoded(self, form: str, build: Callable[[Object], Object]) -> bytes:
        """Return the cached JSON of one form of the object."""
        known = self._forms.get(form)
        if known is None:
            known = self._forms[form] = encode(build(self.object))
        return known


def encode(value: object) -> bytes:
    """Encode compact JSON in UTF-8."""
    return _JSON.encode(value).encode()


def stamped(obj: Object, revision: int) -> Stored:
    """Return a new state whose metadata carries its revision."""
    metadata = obj["metadata"] | {"resourceVersion": str(revision)}
    return Stored(obj | {"metadata": metadata}, revision)
