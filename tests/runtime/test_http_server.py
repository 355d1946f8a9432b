from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from tests.support.runtime import serving
from upgrade_manager.runtime.http_server import BindError, HttpServer

pytestmark = pytest.mark.real_loop


def new_server(app: web.Application, *, host: str = "127.0.0.1", port: int = 0, drain: float = 60) -> HttpServer:
    return HttpServer("test", flag="--test-bind-address", app=app, address=(host, port), drain_timeout=drain)


async def test_running_requests_end_before_the_server() -> None:
    arrived, leave = asyncio.Event(), asyncio.Event()

    async def slow(_request: web.Request) -> web.Response:
        arrived.set()
        await leave.wait()
        return web.Response(text="done")

    app = web.Application()
    app.router.add_get("/", slow)
    server = new_server(app)
    async with asyncio.TaskGroup() as group, aiohttp.ClientSession() as session:
        task = group.create_task(server.run())
        await server.bound()

        async def get() -> str:
            async with session.get(f"http://127.0.0.1:{server.port}/") as response:
                return await response.text()

        getting = group.create_task(get())
        await arrived.wait()
        task.cancel()
        asyncio.get_running_loop().call_later(0.01, leave.set)
        assert await getting == "done"


async def test_endless_request_is_ended_after_the_drain_timeout() -> None:
    arrived = asyncio.Event()

    async def endless(_request: web.Request) -> web.Response:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application()
    # A POST, which aiohttp does not repeat.
    app.router.add_post("/", endless)
    server = new_server(app, drain=0.01)
    async with asyncio.TaskGroup() as group, aiohttp.ClientSession() as session:
        task = group.create_task(server.run())
        await server.bound()
        getting = asyncio.ensure_future(session.post(f"http://127.0.0.1:{server.port}/"))
        await arrived.wait()
        task.cancel()
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await getting


async def test_port_in_use_is_reported_with_its_flag() -> None:
    first = new_server(web.Application())
    async with serving(first) as place:
        with pytest.raises(BindError, match=f"^--test-bind-address {place} is in use$"):
            await new_server(web.Application(), port=first.port).run()


async def test_unusable_address_is_reported_with_its_reason() -> None:
    with pytest.raises(BindError, match=r"^--test-bind-address 192\.0\.2\.1:0 cannot be used: .*assign"):
        await new_server(web.Application(), host="192.0.2.1").run()
