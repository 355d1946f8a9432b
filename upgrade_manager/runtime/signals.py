"""Signals that stop a process, for every command: it imports no part of a controller.

cli/run.py and cli/toolkit.py install them.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.runtime.task_dump import log_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for each SIGTERM and SIGINT, and log all tasks for each SIGUSR1."""
    loop = asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        structlog.get_logger(__name__).info("signal received", signal=number.name)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received, number)
    loop.add_signal_handler(signal.SIGUSR1, log_tasks)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            loop.remove_signal_handler(number)
