from __future__ import annotations

import asyncio
import signal

import pytest

from upgrade_manager.runtime.signals import stop_on_signals


@pytest.mark.real_loop
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_each_signal_is_one_call(number: signal.Signals) -> None:
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
