"""Large bodies in equal shares for all peers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from tests.support.webhook.webhook import API_SERVER, STRANGER, admission, head, review, webhook
from webhook.admission import Admission
from webhook.body import BODY_TIMEOUT, LARGE_BODY, MAX_BODY, MAX_RECEIVING
from webhook.check import Check, Finding, Subject

VALID = json.dumps(review()).encode()
LARGE = VALID + b" " * LARGE_BODY
#: Incomplete bodies that together are as large as may be received.
SLOW = [head(MAX_BODY) + b" " * (MAX_BODY - 1)]
COUNT = MAX_RECEIVING // MAX_BODY
OTHER = "10.52.0.8"


def slowly() -> Admission:
    async def wait(_: Subject) -> Sequence[Finding]:
        await asyncio.sleep(1)
        return []

    return admission(checks=[Check(name="slow", field="spec", find=wait)])


@pytest.mark.rule("security: no bad input has a response of 5xx")
async def test_body_that_expires_at_the_limit_harms_no_other() -> None:
    loop = asyncio.get_running_loop()
    async with webhook() as server:
        wire, handler = server.connect(OTHER)
        # In the same step of the loop as the time-outs below, and before them.
        loop.call_at(loop.time() + BODY_TIMEOUT, handler.data_received, LARGE)
        async with asyncio.TaskGroup() as group:
            slow = [group.create_task(server.send(SLOW)) for _ in range(COUNT)]
            await asyncio.sleep(BODY_TIMEOUT / 2)
            handler.data_received(head(len(LARGE)))
            await wire.closed.wait()
        handler.connection_lost(None)
    assert wire.response().status == 200
    assert [task.result().status for task in slow] == [408] * COUNT


@pytest.mark.rule("security: large bodies are limited for each peer, and API servers go last")
@pytest.mark.parametrize("host", [API_SERVER, OTHER])
async def test_largest_share_of_received_bodies_gives_way(host: str) -> None:
    async with webhook() as server:
        async with asyncio.TaskGroup() as group:
            # The oldest.
            first = group.create_task(server.send([head(len(LARGE)) + LARGE[:-1], LARGE[-1:]], interval=1.0, host=host))
            await asyncio.sleep(0.5)
            slow = [group.create_task(server.send(SLOW)) for _ in range(COUNT)]
        assert first.result().status == 200
        assert [task.result().status for task in slow] == [429] + [408] * (COUNT - 1)


@pytest.mark.rule("security: large bodies are limited for each peer, and API servers go last")
async def test_body_that_gives_way_as_it_ends_keeps_no_memory() -> None:
    whole = head(MAX_BODY) + VALID + b" " * (MAX_BODY - len(VALID))
    async with webhook(slowly()) as server:
        connections = [server.connect(STRANGER) for _ in range(COUNT + 1)]
        for _, handler in connections[:-1]:
            handler.data_received(whole[:-1])
        (first, oldest), (_, newest) = connections[0], connections[-1]
        newest.data_received(head(MAX_BODY))
        await asyncio.sleep(0.5)
        # In one step of the loop, which receives the newest body first.
        newest.data_received(LARGE)
        oldest.data_received(whole[-1:])
        await asyncio.sleep(0.5)
        began = asyncio.get_running_loop().time()
        assert (await server.post(LARGE, host=API_SERVER)).status == 200
        # The check takes a second.
        assert asyncio.get_running_loop().time() - began == pytest.approx(1)
        await first.closed.wait()
        for _, handler in connections:
            handler.connection_lost(None)
    assert first.response().status == 429


@pytest.mark.rule("security: large bodies are limited for each peer, and API servers go last")
@pytest.mark.parametrize(
    ("holder", "others", "ended"),
    [
        pytest.param(STRANGER, {STRANGER: 429, API_SERVER: 200}, 429, id="an API server"),
        pytest.param(STRANGER, {STRANGER: 429, OTHER: 200}, 429, id="another stranger"),
        pytest.param(API_SERVER, {API_SERVER: 429}, 200, id="two of an API server"),
        pytest.param(API_SERVER, {STRANGER: 429}, 200, id="a stranger beside an API server"),
    ],
)
async def test_review_of_a_larger_share_gives_way(holder: str, others: dict[str, int], ended: int) -> None:
    async with webhook(slowly()) as server:
        async with asyncio.TaskGroup() as group:
            largest = group.create_task(server.post(VALID + b" " * (MAX_BODY - len(VALID)), host=holder))
            await asyncio.sleep(0.5)
            assert {host: (await server.post(LARGE, host=host)).status for host in others} == others
        assert largest.result().status == ended
        assert (await server.post(LARGE)).status == 200


async def test_reviews_that_wait_for_room_end_one_other() -> None:
    async with webhook(slowly()) as server, asyncio.TaskGroup() as group:
        half = VALID + b" " * (MAX_BODY // 2 - len(VALID))
        others = [group.create_task(server.post(half)) for _ in range(2)]
        await asyncio.sleep(0.5)
        waiting = [group.create_task(server.post(LARGE, host=API_SERVER)) for _ in range(3)]
        await asyncio.wait([*others, *waiting])
        assert [task.result().status for task in waiting] == [200] * 3
        assert [task.result().status for task in others] == [429, 200]
