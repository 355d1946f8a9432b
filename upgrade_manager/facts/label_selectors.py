"""Label selectors of other projects' objects, evaluated as Kubernetes does.

evictions.py, taints.py and the finders of blockers evaluate selectors by this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.names import label_value
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def matches(selector: object, labels: Mapping[str, str]) -> bool:
    """Return True if the labels match; an empty selector matches all labels, and null matches none."""
    if not isinstance(selector, dict):
        return False
    wanted = objects.mapping(selector, "matchLabels")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(requirement, labels) for requirement in objects.items(selector, "matchExpressions"))


def one_of(label: str, values: Iterable[str]) -> str:
    """Return the selector of objects whose label has one of the values; empty if no value is a valid label value."""
    valid = sorted({value for value in values if value and label_value(value) == value})
    return f"{label} in ({','.join(valid)})" if valid else ""


def _meets(requirement: object, labels: Mapping[str, str]) -> bool:
    label, values = labels.get(objects.text(requirement, "key")), objects.items(requirement, "values")
    match objects.text(requirement, "operator"):
        case "In":
            return label is not None and label in values
        case "NotIn":
            return label is None or label not in values
        case "Exists":
            return label is not None
        case "DoesNotExist":
            return label is None
    return False
