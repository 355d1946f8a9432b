"""A write that the leader must not send any more, at each moment at which that is found out."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from tests.support.server.http_api import connected
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Request, Response

pytestmark = pytest.mark.real_loop


async def test_request_refused_by_its_fence_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("upgrade_manager.kube.http_transport._POOL_SIZE", 1)
    arrived, release = asyncio.Event(), asyncio.Event()
    bodies: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.text())
        arrived.set()
        await release.wait()
        return web.Response()

    def refuse() -> None:
        assert release.is_set(), "checked before the connection is ready"
        raise Transient("not the leader")

    async def release_first() -> None:
        await arrived.wait()
        release.set()

    async with connected(handler) as transport:
        first, second, _ = await asyncio.gather(
            transport.send(Request(method="POST", path="/", body=b"first")),
            transport.send(Request(method="POST", path="/", body=b"second", fence=refuse)),
            release_first(),
            return_exceptions=True,
        )
        assert isinstance(first, Response)
        assert isinstance(second, Transient)
        assert (await transport.send(Request(method="POST", path="/", body=b"third"))).status == 200
    assert bodies == ["first", "third"]


async def test_fence_is_checked_when_the_body_is_sent() -> None:
    bodies: list[str] = []
    checks = 0

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.text())
        return web.Response()

    def refuse_later() -> None:
        nonlocal checks
        checks += 1
        if checks > 1:
            raise Transient("not the leader")

    async with connected(handler) as transport:
        with pytest.raises(Transient):
            await transport.send(Request(method="POST", path="/", body=b"body", fence=refuse_later))
        assert (await transport.send(Request(method="POST", path="/", body=b"next"))).status == 200
    assert (checks, bodies) == (2, ["next"])
