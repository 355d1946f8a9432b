"""Condition lists, as the actors' real counterparts keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

#: The time field that Kubernetes' and Cluster API's conditions have.
TRANSITION = "lastTransitionTime"
#: The one that wrangler's conditions have, moved by any change.
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
    """The list with that condition in its place, or at the end; its time moves only when something changes.

    For `lastTransitionTime` that is its status, for `lastUpdateTime` anything. An empty message is left out.
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
