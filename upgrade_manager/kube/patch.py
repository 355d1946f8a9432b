"""Merge patches, JSON patches, and the smallest merge patch between two objects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: Without the check for circles: a body is a tree.
_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7386: objects merge, null removes, lists and all other values are replaced."""

    content_type: ClassVar[str] = "application/merge-patch+json"

    body: Object

    def at(self, resource_version: str) -> MergePatch:
        """Return the same patch, pinned: it fails with Conflict if the object has another resourceVersion."""
        metadata = {**(self.body.get("metadata") or {}), "resourceVersion": resource_version}
        return MergePatch({**self.body, "metadata": metadata})

    @property
    def resource_version(self) -> str:
        """The resourceVersion to which the patch is pinned; "" if it is not."""
        return str((self.body.get("metadata") or {}).get("resourceVersion") or "")

    def encode(self) -> bytes:
        """Return the request body."""
        return encode(self.body)


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902: operations that are applied all or none; a failed `test` raises Invalid."""

    content_type: ClassVar[str] = "application/json-patch+json"

    ops: list[Object]

    def encode(self) -> bytes:
        """Return the request body."""
        return encode(self.ops)


Patch: TypeAlias = MergePatch | JsonPatch


def merge_diff(old: Object, new: Object) -> Object:
    """Return the smallest RFC 7386 patch from old to new; empty when they are equal.

    A null in `new` means absent, as it does to the API server: a merge patch cannot write null.
    """
    patch: Object = {name: None for name, value in old.items() if value is not None and new.get(name) is None}
    for name, value in new.items():
        before = old.get(name)
        # Identity first: of a thousand entries, nearly all are the same objects.
        if value is None or value is before or value == before:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            inner = merge_diff(before, value)
            if inner:
                patch[name] = inner
        else:
            patch[name] = without_nulls(value)
    return patch


def without_nulls(value: Any) -> Any:
    """Return the value without nulls in objects, as a merge patch can write it; nulls in lists stay."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value


def encode(body: Object | list[Object]) -> bytes:
    """Return compact JSON."""
    return _JSON.encode(body).encode()


def annotation_path(name: str) -> str:
    """Return the annotation's JSON pointer."""
    return "/metadata/annotations/" + name.replace("/", "~1")
