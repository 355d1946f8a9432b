from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import Event, get_ident

import pytest

from upgrade_manager.toolkit.run.background_work import BackgroundCalls, consume, discard

pytestmark = pytest.mark.real_loop

PIECES = [b"a", b"b", b"c"]


async def test_pieces_are_produced_and_used_in_one_other_thread() -> None:
    used = list[bytes]()
    threads = set[int]()

    def produce() -> Iterator[bytes]:
        for piece in PIECES:
            threads.add(get_ident())
            yield piece

    def use(piece: bytes, _: Event) -> None:
        threads.add(get_ident())
        used.append(piece)

    await consume(produce(), use)
    assert used == PIECES
    assert len(threads - {get_ident()}) == len(threads) == 1


async def test_error_of_the_stream_is_raised() -> None:
    def produce() -> Iterator[bytes]:
        yield b"a"
        raise ValueError("corrupt")

    with pytest.raises(ValueError, match="corrupt"):
        await consume(produce(), discard)


async def test_rest_of_the_stream_can_be_used_after_an_error() -> None:
    pieces, used = iter(PIECES), list[bytes]()

    def refuse(_: bytes, __: Event) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await consume(pieces, refuse)
    await consume(pieces, lambda piece, _: used.append(piece))
    assert used == [b"b", b"c"]


async def test_cancelled_consumer_stops_and_is_awaited() -> None:
    started, ended = Event(), list[bytes]()

    def wait(piece: bytes, stopped: Event) -> None:
        started.set()
        stopped.wait()
        ended.append(piece)

    task = asyncio.create_task(consume(iter(PIECES), wait))
    await asyncio.to_thread(started.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [b"a"]


async def test_calls_run_one_at_a_time_and_the_last_is_awaited() -> None:
    events, release = list[str](), Event()

    def call(name: str) -> None:
        events.append(f"{name} began")
        release.wait()
        events.append(f"{name} ended")

    async with BackgroundCalls() as calls:
        await calls.start(call, "first")
        second = asyncio.create_task(calls.start(call, "second"))
        release.set()
        await second
    assert events == ["first began", "first ended", "second began", "second ended"]


async def test_error_of_a_call_is_raised_by_the_next_one() -> None:
    def fail() -> None:
        raise OSError("full")

    async with BackgroundCalls() as calls:
        await calls.start(fail)
        with pytest.raises(OSError, match="full"):
            await calls.start(fail)
        with pytest.raises(OSError, match="full"):
            await calls.finished()
