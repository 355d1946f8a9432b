"""The forms of a response: objects, PartialObjectMetadata or a Table, chosen by the Accept header."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hack.apiserver import table
from hack.apiserver.status import not_acceptable
from hack.apiserver.stored import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row
    from hack.apiserver.stored import Stored

_JSON = {"application/json", "*/*", ""}
_META = "meta.k8s.io/v1"


class Form(Enum):
    """The form of a response."""

    OBJECT = "object"
    METADATA = "metadata"
    TABLE = "table"


_FORMS = {
    "Table": Form.TABLE,
    "PartialObjectMetadata": Form.METADATA,
    "PartialObjectMetadataList": Form.METADATA,
}


@lru_cache(64)
def negotiate(accept: str) -> Form:
    """Return the first supported form of an Accept header. Raises StatusError 406."""
    for clause in accept.split(","):
        media, *pairs = (part.strip() for part in clause.split(";"))
        parameters = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if media not in _JSON:
            continue
        expected = parameters.get("as")
        if expected is None:
            return Form.OBJECT
        if expected in _FORMS and parameters.get("v") == "v1" and parameters.get("g") == "meta.k8s.io":
            return _FORMS[expected]
    raise not_acceptable("only the following media types are accepted: application/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The form in which one client receives objects of a kind."""

    row: Row
    form: Form
    #: The includeObject parameter: None, Metadata or Object; for Tables only.
    include_object: str
    now: Callable[[], datetime]

    def one(self, stored: Stored) -> bytes:
        """Return one object."""
        if self.form is Form.TABLE:
            revision = str(stored.revision)
            return encode(self._table([stored], {"resourceVersion": revision}, columns=True))
        return self._encoded(stored)

    def listing(self, states: Sequence[Stored], metadata: dict[str, Any]) -> bytes:
        """Return a list of objects."""
        if self.form is Form.TABLE:
            return encode(self._table(states, metadata, columns=True))
        kind, version = self.row.list_kind, self.row.resource.api_version
        if self.form is Form.METADATA:
            kind, version = "PartialObjectMetadataList", _META
        head = encode({"kind": kind, "apiVersion": version, "metadata": metadata})
        if not states and self.form is Form.METADATA:
            return head[:-1] + b',"items":null}'  # as kube-apiserver
        items = b",".join(self._item(stored) for stored in states)
        return head[:-1] + b',"items":[' + items + b"]}"

    def event(self, kind: str, stored: Stored, *, first: bool) -> bytes:
        """Return one line of a watch."""
        if self.form is Form.TABLE:
            revision = str(stored.revision)
            body = encode(self._table([stored], {"resourceVersion": revision}, columns=first))
        else:
            body = self._encoded(stored)
        return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"

    def bookmark(self, revision: int) -> bytes:
        """Return a bookmark line of a watch."""
        metadata = {"resourceVersion": str(revision)}
        obj = {"kind": self.row.resource.kind, "apiVersion": self.row.resource.api_version, "metadata": metadata}
        if self.form is Form.METADATA:
            obj |= {"kind": "PartialObjectMetadata", "apiVersion": _META}
        if self.form is Form.TABLE:
            obj = self._table([], {"resourceVersion": str(revision)}, columns=False)
        return encode({"type": "BOOKMARK", "object": obj}) + b"\n"

    def _encoded(self, stored: Stored) -> bytes:
        if self.form is Form.METADATA:
            return stored.encoded("metadata", _partial)
        return stored.encoded("object", lambda obj: obj)

    def _item(self, stored: Stored) -> bytes:
        """Omit kind and apiVersion of built-in kinds in lists, as kube-apiserver does."""
        encoded = self._encoded(stored)
        if self.row.custom or self.form is not Form.OBJECT:
            return encoded
        return b"{" + encoded[encoded.index(b'"metadata":') :]

    def _table(self, states: Sequence[Stored], metadata: dict[str, Any], *, columns: bool) -> Object:
        objects = [stored.object for stored in states]
        return table.render(
            self.row,
            objects,
            metadata=metadata,
            include_object=self.include_object,
            columns=columns,
            now=self.now(),
        )


def _partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}
