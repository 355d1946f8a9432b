"""Random reviews never give a 5xx, a traceback or a hang."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from hack.virtual_time import VirtualEventLoop
from tests.support.webhook.review_fuzz import check, check_mutation, run
from tests.support.webhook.webhook import admission, head, review, webhook
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.peers import Peers
from upgrade_manager.runtime.self_signed import self_signed
from webhook import mutation
from webhook.catalogue import CHECKS
from webhook.metrics import WebhookMetrics
from webhook.server import webhook_server

BATCH = 500
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["metadata", "spec", "status", "name", "annotations", "nodeUpgradeOption", "pauseNodes"])
PLANS = st.recursive(JSON, lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=12)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("uid", "kind", "name", "subResource", "userInfo", "dryRun"), JSON),
        **dict.fromkeys(("object", "oldObject"), PLANS),
    },
)


@pytest.mark.rule("admission: every request gets a decision with its uid or a 4xx, whatever it contains")
@pytest.mark.thin
@pytest.mark.parametrize("first", range(0, 5000, BATCH))
async def test_mutated_reviews_give_a_verdict_or_4xx(first: int) -> None:
    async with webhook() as server:
        statuses = await run(server, range(first, first + BATCH))
    assert statuses[200] > BATCH / 3
    assert statuses[400] > BATCH / 20


def test_fields_of_any_type_give_a_verdict_or_4xx() -> None:
    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        stack = AsyncExitStack()
        server = runner.run(stack.enter_async_context(webhook()))

        @given(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]), FIELDS)
        @settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
        def send(operation: str, fields: dict[str, Any]) -> None:
            body = json.dumps(review(operation, **fields)).encode()
            check(body, runner.run(server.post(body)))
            check_mutation(runner.run(server.post(body, path=mutation.PATH)))

        send()
        runner.run(stack.aclose())


@asynccontextmanager
async def served(*, secure: bool) -> AsyncIterator[int]:
    async def tls() -> Any:
        return await self_signed() if secure else None

    metrics = WebhookMetrics(Metrics(CollectorRegistry()), checks=[check.name for check in CHECKS])
    server = webhook_server(admission(), metrics=metrics, address=("127.0.0.1", 0), tls=tls, peers=Peers())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.bound()
        yield server.port
        task.cancel()


async def exchange(port: int, data: bytes, *, ends: bool = False) -> bytes:
    """Send bytes over a socket, and their end; return all that is received."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        await writer.drain()
        if ends:
            writer.write_eof()
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.real_loop
async def test_server_survives_bytes_that_are_not_tls_or_http() -> None:
    hostile = [b"\x16\x03\x01", b"\x16\x03\x01\xff\xff" + b"\x00" * 70_000, b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 1000]
    hostile += [
        b"POST " + b"a" * 100_000,
        b"POST / HTTP/9.9\r\n\r\n",
        b"\r\n" * 1000,
        head(10)[:-4] + b"\r\nA" * 50_000,
    ]
    for secure in (True, False):
        async with served(secure=secure) as port:
            for data in hostile:
                received = await asyncio.wait_for(exchange(port, data, ends=True), timeout=30)
                assert not received.startswith(b"HTTP/1.1 5")
                assert b"Traceback" not in received
            if not secure:
                body = json.dumps(review()).encode()
                assert (await exchange(port, head(len(body)) + body)).startswith(b"HTTP/1.1 200")
