"""A cache of texts that are read from the API server without a watch.

pipeline/informers.py keeps one for each plan; blockers/job_failures.py fills it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class TTLCache:
    """Caches texts by key, each for the same time."""

    def __init__(self, *, ttl: float) -> None:
        self._ttl = ttl
        #: By key: expiry in loop time, value.
        self._entries: dict[str, tuple[float, str]] = {}

    async def get(self, key: str, load: Callable[[], Awaitable[str]]) -> str:
        """Return the cached value, else load it."""
        now = loop_time()
        self._entries = {key: entry for key, entry in self._entries.items() if entry[0] > now}
        if key not in self._entries:
            self._entries[key] = (now + self._ttl, await load())
        return self._entries[key][1]
