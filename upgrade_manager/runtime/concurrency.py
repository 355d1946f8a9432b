from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

#: Coroutines that run at the same time; more would only queue in the connection pool.
MAX_CONCURRENT = 16


async def run_all(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Run independent coroutines concurrently, each to its end even if another one fails.

    Raises the first error in the given order; a failed precondition, which the next reconcile resolves, only
    if there is no other.
    """
    limit = asyncio.Semaphore(MAX_CONCURRENT)

    async def run(coroutine: Coroutine[Any, Any, Any]) -> None:
        async with limit:
            await coroutine

    try:
        results = await asyncio.gather(*(run(coroutine) for coroutine in coroutines), return_exceptions=True)
    finally:
        # A cancellation leaves some that have not begun.
        for coroutine in coroutines:
            coroutine.close()
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, PreconditionFailed)), errors[0])


@contextmanager
def foreign_cancellation_as_error(about: str) -> Iterator[None]:
    """Raise RuntimeError if a task that the current one awaits was cancelled; its own cancellation passes."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError(f"{about}: an awaited task was cancelled: {error!r}") from error
