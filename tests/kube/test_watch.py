from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

import pytest

from tests.support.kube_server import FedStream, event, node, reset
from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.errors import TIMED_OUT, Transient
from upgrade_manager.kube.watch import StreamWatcher

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Stream


def watch(stream: Stream, *, timeout: int = 300) -> StreamWatcher:
    return StreamWatcher(stream, timeout=timeout)


async def test_a_break_is_told_after_the_events_before_it() -> None:
    batches = watch(FedStream(event("ADDED", node("a")), reset()))
    assert len(await anext(batches)) == 1
    with pytest.raises(Transient, match="broke"):
        await anext(batches)


async def test_reading_may_be_broken_off_and_taken_up_again() -> None:
    lines = [event("ADDED", node(called)) for called in "abc"]
    opened = watch(FedStream(b"".join(lines) + b"rubbish\n"))
    async for events in opened:
        opened.unread(events[1:])
        break
    assert [entry.object["metadata"]["name"] for entry in await anext(opened)] == ["b", "c"]
    with pytest.raises(Undecodable):
        await anext(opened)
    assert opened.received == 3


@pytest.mark.parametrize(("asked", "after"), [(300, 80), (20, 50)], ids=["silence", "the deadline"])
async def test_a_stream_does_not_last_for_ever(asked: int, after: float) -> None:
    with pytest.raises(Transient) as caught:
        await anext(watch(FedStream(), timeout=asked))
    assert caught.value.reason == TIMED_OUT
    assert asyncio.get_running_loop().time() == after


async def test_drips_that_never_make_an_event_end_at_the_deadline() -> None:
    stream = FedStream()
    opened = watch(stream, timeout=100)

    async def drip() -> None:
        while True:
            stream.feed(b"x")
            await asyncio.sleep(10)

    task = asyncio.create_task(drip())
    with pytest.raises(Transient):
        await anext(opened)
    task.cancel()
    assert asyncio.get_running_loop().time() == 130


async def test_a_stream_that_has_nothing_to_close_is_let_go() -> None:
    class Pieces:
        status = 200
        headers: dict[str, str] = {}  # noqa: RUF012  # the protocol's type

        def chunks(self) -> Self:
            return self

        def __aiter__(self) -> Self:
            return self

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

    opened = watch(Pieces())
    assert [batch async for batch in opened] == []
    await opened.aclose()
