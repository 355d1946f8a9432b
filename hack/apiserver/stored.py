"""One state of one object, with everything that is derived from it made at most once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.apiserver.admission import Object


class Stored:
    """An object as it was at one revision; neither it nor anything in it is ever changed."""

    __slots__ = ("_forms", "object", "revision")

    def __init__(self, obj: Object, revision: int) -> None:
        self.object = obj
        self.revision = revision
        #: Encoded forms by their keys; watchers and lists share them.
        self._forms: dict[str, bytes] = {}

    @property
    def namespace(self) -> str:
        """Empty for cluster-scoped objects."""
        return str(self.object["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.object["metadata"]["name"])

    def encoded(self, form: str, build: Callable[[Object], Object]) -> bytes:
        """The JSON of one form of the object, built when it is asked for the first time."""
        known = self._forms.get(form)
        if known is None:
            known = self._forms[form] = encode(build(self.object))
        return known


def encode(value: object) -> bytes:
    """Compact JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def stamped(obj: Object, revision: int) -> Stored:
    """A new state whose metadata carries its revision."""
    metadata = obj["metadata"] | {"resourceVersion": str(revision)}
    return Stored(obj | {"metadata": metadata}, revision)
