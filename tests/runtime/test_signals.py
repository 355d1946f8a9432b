from __future__ import annotations

import asyncio
import signal

import pytest
from structlog.testing import capture_logs

from upgrade_manager.runtime.signals import stop_on_signals


@pytest.mark.real_loop
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_each_signal_is_one_stop_request(number: signal.Signals) -> None:
    received = asyncio.Event()
    calls: list[int] = []

    def stop() -> None:
        calls.append(1)
        received.set()

    before = signal.getsignal(number)
    with stop_on_signals(stop):
        for count in (1, 2):
            received.clear()
            signal.raise_signal(number)
            await received.wait()
            assert len(calls) == count
    assert signal.getsignal(number) in {before, signal.SIG_DFL, signal.default_int_handler}


@pytest.mark.real_loop
async def test_sigusr1_logs_the_tasks_and_stops_nothing() -> None:
    stops: list[int] = []
    with stop_on_signals(lambda: stops.append(1)), capture_logs() as lines:
        signal.raise_signal(signal.SIGUSR1)
        # The loop reads the signal from a socket in one iteration and runs the handler in the next.
        for _ in range(3):
            await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.get_name() in {line["name"] for line in lines}
    assert stops == []
