"""Turns SIGTERM and SIGINT into calls on the event loop."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for each signal that asks us to end, as long as the context lasts.

    `Manager.stop` is made for it: its first call stops in order, its second by force.
    """
    loop = asyncio.get_running_loop()
    log = structlog.get_logger(__name__)

    def received(number: signal.Signals) -> None:
        log.info("signal received", signal=number.name)
        stop()

    for number in SIGNALS:
        loop.add_signal_handler(number, received, number)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
