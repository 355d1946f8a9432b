"""Condition lists, as Kubernetes, Cluster API and wrangler keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: The time field of Kubernetes and Cluster API conditions; it moves with the status.
TRANSITION = "lastTransitionTime"
#: The time field of wrangler conditions; it moves with any change.
UPDATE = "lastUpdateTime"


def with_condition(
    conditions: list[Object],
    type_: str,
    status: str,
    *,
    at: str,
    reason: str = "",
    message: str = "",
    time: str = UPDATE,
) -> list[Object]:
    """Return the list with the condition set in place, or appended; its time moves only on a change.

    A `lastTransitionTime` moves with the status, a `lastUpdateTime` with any field. An empty message is omitted.
    """
    old = next((entry for entry in conditions if entry.get("type") == type_), None)
    new = {"type": type_, "status": status, "reason": reason, "message": message}
    new = {key: value for key, value in new.items() if value}
    moved = ("status",) if time == TRANSITION else ("status", "reason", "message")
    stays = old is not None and all(old.get(key) == new.get(key) for key in moved)
    new[time] = old[time] if stays and old is not None and old.get(time) else at
    if old is None:
        return [*conditions, new]
    return [new if entry is old else entry for entry in conditions]
