"""The default values of fields of built-in kinds.

A real server adds them to stored objects, so controllers that compare objects must handle them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.apiserver.builtin_defaults import DEFAULTS

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row


def defaults_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Add the defaults of a built-in kind; a mutating stage."""
    _ = (old, operation, options)
    template = None if row.custom else DEFAULTS.get(row.resource.name)
    return new if template is None else filled(new, template)


def filled(value: Any, template: dict[str, Any]) -> Any:
    """Return the value with the defaults of the template; the same value when none applies.

    A key of the template that ends in [] describes each item of a list; one that ends in ? applies only if the member
    exists. A function computes the default from the neighbouring members; None means no default.
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
    # Go does not distinguish an empty string from an absent one.
    if (known is None or (known == "" and not isinstance(default, dict))) and not key.endswith("?"):
        if callable(default):
            return default(around)
        return filled({}, default) if isinstance(default, dict) else default
    return filled(known, default) if isinstance(default, dict) else known
