"""The clock by which durations are measured: the event loop's own, so that tests can let hours pass in no time."""

from __future__ import annotations

import asyncio


def loop_time() -> float:
    """Seconds on the running loop's clock; it never goes back, and only differences mean anything."""
    return asyncio.get_running_loop().time()
