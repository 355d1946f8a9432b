"""Base class of the API models: dataclasses that read raw JSON objects, and describe their fields.

spec.py, status.py, blockers.py and conditions.py derive from it; crd.py makes the CRD's schema of the fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from types import UnionType
from typing import TYPE_CHECKING, Any, Self, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Mapping

_METADATA = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonField:
    """The description of a field in the CRD."""

    #: The name in JSON; empty for the field's name in camelCase.
    alias: str
    description: str
    #: The API server refuses an object without it.
    required: bool
    #: Further keywords of the field's schema.
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A field of a model, with its type."""

    name: str
    json_name: str
    type: Any
    json: JsonField


def json_field(*, description: str, alias: str = "", required: bool = False, schema: Any = None, **default: Any) -> Any:
    """Return a field of a model; `default` or `default_factory` is the value of an absent or invalid one."""
    described = JsonField(alias=alias, description=description, required=required, schema=schema or {})
    return field(**default, metadata={_METADATA: described})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiModel:
    """A part of an object, with camelCase names in JSON. Its fields are made by `json_field`.

    Reading never fails: a field of the wrong type counts as absent. The API server enforces the schema; an invalid
    field was stored by a newer version or before a rule existed, and must not make the other fields unreadable.
    """

    @classmethod
    def read(cls, value: object) -> Self:
        """Return the model of a raw JSON object; an empty one for anything else."""
        raw = value if isinstance(value, dict) else {}
        found = {member.name: _read(member.type, raw.get(member.json_name)) for member in members_of(cls)}
        return cls(**{name: item for name, item in found.items() if item is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedObject(ApiModel):
    """A part of the status about one object of the cluster."""

    kind: str = json_field(required=True, default="", description="Kind of the object.")
    namespace: str = json_field(default="", description="Namespace of the object; absent for cluster-scoped objects.")
    name: str = json_field(required=True, default="", description="Name of the object.")


#: By model.
_MEMBERS: dict[type[ApiModel], tuple[Member, ...]] = {}


def members_of(model: type[ApiModel]) -> tuple[Member, ...]:
    """Return the fields of a model, in order."""
    if model not in _MEMBERS:
        types = get_type_hints(model)
        described = {one.name: one.metadata[_METADATA] for one in fields(model)}
        _MEMBERS[model] = tuple(
            Member(name=name, json_name=json.alias or _camel_case(name), type=types[name], json=json)
            for name, json in described.items()
        )
    return _MEMBERS[model]


def optional_of(type_: Any) -> Any:
    """Return T of `T | None`, and any other type as it is."""
    return get_args(type_)[0] if get_origin(type_) is UnionType else type_


def _read(type_: Any, value: object) -> Any:
    """Return the value if it has the type, without the invalid items of a list or map; None if it has another one."""
    type_ = optional_of(type_)
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is list:
        read = [_read(arguments[0], item) for item in value] if isinstance(value, list) else None
        return read and [item for item in read if item is not None]
    if origin is dict:
        items = {key: _read(arguments[1], item) for key, item in value.items()} if isinstance(value, dict) else None
        return items and {key: item for key, item in items.items() if item is not None}
    if type_ is Any:
        return value
    if issubclass(type_, ApiModel):
        return type_.read(value)
    # Not isinstance: True is an int, too.
    return value if type(value) is type_ else None


def _camel_case(name: str) -> str:
    head, *words = name.split("_")
    return head + "".join(map(str.title, words))
