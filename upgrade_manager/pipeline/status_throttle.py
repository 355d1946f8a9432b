"""The pace of writes of a plan's status, of which reconciler.py has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
        interval = DETAIL_INTERVAL if status.only_details(message) else MESSAGE_INTERVAL
        delay = self._last_write + interval - self._now()
        return delay if delay > 0 and status.only_informs() else 0.0
