from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Coroutine

#: Requests of one plan that are under way at the same time; more would only queue in the connection pool.
AT_ONCE = 16


async def together(*steps: Coroutine[Any, Any, Any]) -> None:
    """Take steps that do not depend on each other at the same time, each to its end, whatever becomes of the others.

    So a slow API server is waited for once, and a step that cannot succeed keeps none of the others from it. Raises the
    first error in the order given; a conflict, which another look mends, only where there is nothing else.
    """
    limit = asyncio.Semaphore(AT_ONCE)

    async def take(step: Coroutine[Any, Any, Any]) -> None:
        async with limit:
            await step

    results = await asyncio.gather(*(take(step) for step in steps), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, Conflict)), errors[0])
