"""The gateway, over real TLS connections."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

import aiohttp
import pytest

from hack.apiserver.identity import User
from hack.apiserver.posting import NoPoster
from hack.apiserver.server import ApiServer
from hack.cluster.gateway import Gateway
from hack.control_plane.certificates import Authority, client_context, server_context
from hack.faults.middleware import Middleware
from hack.faults.rules import Cut, LoseAnswer, Match, Rule
from tests.support.server.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.real_loop

MAPS = "/api/v1/namespaces/default/configmaps"
ALLOWED = {"authorization": "Bearer good"}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(now=datetime.now(UTC))


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    return server_context(authority.server(), tmp_path)


@pytest.fixture
async def server() -> ApiServer:
    server = ApiServer(now=lambda: datetime.now(UTC), random=Random(1), poster=NoPoster())
    server.authenticator.register("good", User(name="jane", groups=("system:masters",)))
    return server


@pytest.fixture
async def faults(server: ApiServer) -> Middleware:
    return Middleware(server, random=Random(1))


@pytest.fixture
async def gateway(faults: Middleware, tls: ssl.SSLContext) -> AsyncIterator[Gateway]:
    async with Gateway(faults, tls=tls) as gateway:
        yield gateway


@pytest.fixture
async def session(authority: Authority, gateway: Gateway) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=client_context(authority.certificate))
    async with aiohttp.ClientSession(gateway.url, connector=connector, headers=ALLOWED) as session:
        yield session


@pytest.mark.parametrize(
    ("path", "query"),
    [(MAPS, {}), (f"{MAPS}/missing", {}), (MAPS, {"watch": "1", "timeoutSeconds": "1"})],
    ids=["a list", "a failure", "a watch"],
)
async def test_date_is_by_the_clock_of_the_api_server(
    tls: ssl.SSLContext, authority: Authority, path: str, query: dict[str, str]
) -> None:
    early = ApiServer(now=lambda: datetime(2026, 1, 2, tzinfo=UTC), random=Random(1), poster=NoPoster())
    early.authenticator.register("good", User(name="jane", groups=("system:masters",)))
    connector = aiohttp.TCPConnector(ssl=client_context(authority.certificate))
    async with (
        Gateway(early, tls=tls) as gateway,
        aiohttp.ClientSession(gateway.url, connector=connector, headers=ALLOWED) as session,
        session.get(path, params=query) as response,
    ):
        assert response.headers["date"] == "Fri, 02 Jan 2026 00:00:00 GMT"


async def test_broken_stream_breaks_the_connection(session: aiohttp.ClientSession, faults: Middleware) -> None:
    faults.add(Rule(match=Match(verbs=("watch",)), action=Cut(events=1, clean=False)))
    for name in "ab":
        async with session.post(MAPS, json={"metadata": {"name": name}}):
            pass
    with pytest.raises(aiohttp.ClientError):
        async with session.get(MAPS, params={"watch": "1"}) as response:
            await response.read()


async def test_lost_response_breaks_the_connection(
    session: aiohttp.ClientSession, faults: Middleware, server: ApiServer
) -> None:
    faults.add(Rule(match=Match(verbs=("create",)), action=LoseAnswer()))
    with pytest.raises(aiohttp.ClientError):
        async with session.post(MAPS, json={"metadata": {"name": "a"}}):
            pass
    assert (await RawClient(server).get(MAPS)).names == ["a"]


async def test_shutdown_ends_streams_properly(faults: Middleware, tls: ssl.SSLContext, authority: Authority) -> None:
    connector = aiohttp.TCPConnector(ssl=client_context(authority.certificate))
    async with aiohttp.ClientSession(connector=connector, headers=ALLOWED) as session:
        async with Gateway(faults, tls=tls) as gateway:
            response = await session.get(f"{gateway.url}{MAPS}?watch=1")
            assert response.status == 200
        async with asyncio.timeout(5):
            assert await response.read() == b""


async def test_silent_client_is_disconnected_with_the_gateway(
    faults: Middleware, tls: ssl.SSLContext, authority: Authority
) -> None:
    """A Pod whose network was removed answers no end of its TLS session."""
    arrived, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context(authority.certificate).wrap_bio(arrived, sent, server_hostname="127.0.0.1")
    async with Gateway(faults, tls=tls) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for act in (
            client.do_handshake,
            lambda: client.write(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n"),
            client.read,
        ):
            while True:
                try:
                    act()
                    break
                except ssl.SSLWantReadError:
                    writer.write(sent.read())
                    arrived.write(await reader.read(65536))
            writer.write(sent.read())
    async with asyncio.timeout(10):
        while await reader.read(65536):
            pass
    writer.close()
    await writer.wait_closed()
