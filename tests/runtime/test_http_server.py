from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from upgrade_manager.runtime.bindaddress import BindAddress
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.http_server import HttpServer

pytestmark = pytest.mark.real_loop


def new_server(app: web.Application, port: int = 0) -> HttpServer:
    return HttpServer("test", app=app, address=BindAddress("127.0.0.1", port), drain=5)


async def test_a_server_is_ready_while_it_accepts_connections() -> None:
    server = new_server(web.Application())
    with pytest.raises(Unhealthy, match="server test does not accept connections"):
        await server.check()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.bound()
        await server.check()
        assert server.port > 0
        task.cancel()
    with pytest.raises(Unhealthy):
        await server.check()


async def test_requests_that_are_under_way_end_before_the_server_does() -> None:
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

        async def ask() -> str:
            async with session.get(f"http://127.0.0.1:{server.port}/") as answer:
                return await answer.text()

        asking = group.create_task(ask())
        await arrived.wait()
        task.cancel()
        asyncio.get_running_loop().call_later(0.01, leave.set)
        assert await asking == "done"


async def test_a_port_that_is_taken_is_an_error() -> None:
    first = new_server(web.Application())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(first.run())
        await first.bound()
        with pytest.raises(OSError, match="address already in use"):
            await new_server(web.Application(), first.port).run()
        task.cancel()
