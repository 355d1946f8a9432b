"""A time limit for one reconcile, which is retried after it.

pipeline/reconciler.py and pipeline/ending/leftovers.py run in it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from upgrade_manager.runtime.result import ReconcileTimeout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

#: Seconds for one reconcile. With the 10 s in which an error is recorded, that is below the minute after which the
#: liveness probe reports a hung reconcile.
RECONCILE_TIMEOUT = 48.0


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Raise ReconcileTimeout if the block takes longer. A TimeoutError of the block passes as it is."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise ReconcileTimeout(f"reconcile timed out after {seconds:.0f} s (API server is slow); retrying") from error
