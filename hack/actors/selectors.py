"""Label selectors of objects: matchLabels and matchExpressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.objects import Object


class SelectorError(ValueError):
    """An unknown operator."""


def matches(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Report whether the labels match; None matches nothing, an empty selector everything. Raises SelectorError."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(matches_expression(one, labels) for one in selector.get("matchExpressions") or ())


def matches_expression(expression: Object, labels: Mapping[str, str]) -> bool:
    """Report whether one requirement matches; node affinity adds Gt and Lt. Raises SelectorError."""
    key, operator = expression.get("key") or "", expression.get("operator") or ""
    values, value = expression.get("values") or [], labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(operator, value, values)
    raise SelectorError(f"{operator!r} is not a valid label selector operator")


def _compares(operator: str, value: str | None, values: list[str]) -> bool:
    if value is None or not values or not value.isdecimal():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
