"""The same object in the other versions of its kind: apiVersion differs, and at most the names of top-level fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row


def shown(row: Row, stored: Object) -> Object:
    """A stored object as this version of the kind presents it; the same object when nothing differs."""
    if stored["apiVersion"] == row.resource.api_version:
        return stored
    names = dict(row.renames)
    obj = {names.get(key, key): value for key, value in stored.items()}
    obj["apiVersion"] = row.resource.api_version
    return obj


def kept(row: Row, obj: Object) -> Object:
    """An object of this version as it is stored."""
    if not row.stored_as:
        return obj
    names = {shown_name: stored_name for stored_name, shown_name in row.renames}
    stored = {names.get(key, key): value for key, value in obj.items()}
    group = row.stored_as.partition(".")[2]
    version = row.resource.version
    stored["apiVersion"] = f"{group}/{version}" if group else version
    return stored
