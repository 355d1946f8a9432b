"""The values that the server fills in for fields of built-in kinds which a client leaves out.

A manager that compares what it wants with what is stored meets them on every real server, so it must meet them here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.builtin_defaults import DEFAULTS

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row


def defaults_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Fill a built-in object in; a mutating stage."""
    _ = (old, operation, options)
    template = None if row.custom else DEFAULTS.get(row.resource.name)
    return new if template is None else filled(new, template)


def filled(value: Any, template: dict[str, Any]) -> Any:
    """The value with what the template adds; the same value when that is nothing.

    A key of the template that ends in [] describes each item of a list, one that ends in ? a member that stays absent
    when it is. A function makes the default out of the members next to it; None is no default.
    """
    if not isinstance(value, dict):
        return value
    result = value
    for key, default in template.items():
        name = key.rstrip("[]?")
        known = result.get(name)
        added = _items(known, default) if key.endswith("[]") else _member(result, key, known, default)
        if added is not known:
            result = result | {name: added}
    return result


def _items(known: Any, template: dict[str, Any]) -> Any:
    if not isinstance(known, list):
        return known
    items = [filled(item, template) for item in known]
    return known if all(new is old for new, old in zip(items, known, strict=True)) else items


def _member(around: Object, key: str, known: Any, default: Any) -> Any:
    # An empty text is what Go has where a text is left out, and writes for some fields.
    if (known is None or (known == "" and not isinstance(default, dict))) and not key.endswith("?"):
        if callable(default):
            return default(around)
        return filled({}, default) if isinstance(default, dict) else default
    return filled(known, default) if isinstance(default, dict) else known
