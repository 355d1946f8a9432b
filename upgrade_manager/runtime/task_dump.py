"""Logs all tasks and where each waits, for `kill -USR1`.

signals.py calls it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator


def log_tasks() -> None:
    """Log one line for each task: its name and its stack, the innermost call last."""
    log = structlog.get_logger(__name__)
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        log.info("task", name=task.get_name(), stack=list(_stack(task.get_coro())))


def _stack(awaited: Any) -> Iterator[str]:
    """Yield the calls of a chain of coroutines; `Task.get_stack` has only the first one."""
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f"{frame.f_globals['__name__']}:{frame.f_lineno} {frame.f_code.co_qualname}"
        awaited = awaited.cr_await
