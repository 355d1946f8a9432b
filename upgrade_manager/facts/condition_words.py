"""Texts of the conditions of other projects' objects.

The finders of blockers imports, rancher and volumes quote them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Condition types of Cluster API, Rancher and Harvester's images that are False on a healthy object.
_NEGATIVE = frozenset(
    {
        *("Deleting", "Paused", "Remediating", "RollingOut", "ScalingDown", "ScalingUp", "Updating"),
        *("Reconciling", "Stalled"),
        *("BackingImageMissing", "RetryLimitExceeded"),
    }
)


def unmet_conditions(obj: object) -> Iterator[str]:
    """Yield the conditions that are False or Unknown, each with its message or reason.

    Cluster API serves its newer conditions beside the older ones.
    """
    for path in (("status",), ("status", "v1beta2")):
        for condition in objects.items(obj, *path, "conditions"):
            status = objects.text(condition, "status")
            if status not in {"False", "Unknown"}:
                continue  # nearly all conditions are met, on each of a thousand Machines
            type_ = objects.excerpt(condition, "type")
            if status == "Unknown" or type_ not in _NEGATIVE:
                yield f"{type_}: {condition_words(condition) or status}"


def condition_words(condition: object) -> str:
    """Return the condition's message, else its reason."""
    return objects.excerpt(condition, "message") or objects.excerpt(condition, "reason")
