"""The pace of writes of a plan's status, of which reconciler.py has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.conditions import PROGRESSING
from upgrade_manager.api.text import bounded_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from upgrade_manager.pipeline.status import StatusPatch

#: Seconds between two writes that change messages and node states only. A status grows with the cluster: 1,000 nodes
#: that preload images at once must not cause a write each.
MESSAGE_INTERVAL = 1.0
#: Seconds between two writes that change only the detail of the Progressing message, such as a Pod that has started.
DETAIL_INTERVAL = 5.0


class StatusThrottle:
    """Limits how often a status is written in which only messages and node states have changed."""

    def __init__(self, *, now: Callable[[], float]) -> None:
        self._now = now
        self._last_write = float("-inf")

    def written(self) -> None:
        """Start the interval after a write of the status."""
        self._last_write = self._now()

    def delay(self, status: StatusPatch, message: str) -> float:
        """Return the seconds until the status may be written; `message` is the Progressing message without detail."""
        interval = DETAIL_INTERVAL if only_details(status, message) else MESSAGE_INTERVAL
        delay = self._last_write + interval - self._now()
        return delay if delay > 0 and only_informs(status) else 0.0


def only_informs(status: StatusPatch) -> bool:
    """Return True if only messages, node states and the estimate have changed, whose write may be delayed."""
    if not status.difference().keys() <= {"conditions", "estimatedCompletion", "nodeUpgradeStatuses", "survey"}:
        return False
    return _without_messages(status.written) == _without_messages(status.fields)


def only_details(status: StatusPatch, message: str) -> bool:
    """Return True if only the detail that follows `message` in Progressing has changed."""
    if status.difference().keys() != {"conditions"}:
        return False
    before, after = map(_by_type, (status.written, status.fields))
    written = before.get(PROGRESSING, {}).pop("message", "")
    after.get(PROGRESSING, {}).pop("message", "")
    return before == after and written.startswith(bounded_line(message))


def _by_type(status: Mapping[str, Any]) -> dict[Any, dict[str, Any]]:
    return {c.get("type"): dict(c) for c in status.get("conditions") or [] if isinstance(c, dict)}


def _without_messages(status: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [(c.get("type"), c.get("status"), c.get("reason")) for c in status.get("conditions") or []]
