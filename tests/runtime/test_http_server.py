from __future__ import annotations

import asyncio
from http import HTTPStatus

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.support.managers.runtime import serving
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


@pytest.mark.parametrize(
    ("error", "status", "logged"),
    [(ZeroDivisionError(), 500, [("request failed unexpectedly", "127.0.0.1", "test")]), (web.HTTPNotFound(), 404, [])],
)
async def test_bug_in_a_handler_is_logged_with_the_client(error: Exception, status: int, logged: object) -> None:
    async def fail(_request: web.Request) -> web.Response:
        raise error

    app = web.Application()
    app.router.add_get("/", fail)
    async with serving(new_server(app)) as place, aiohttp.ClientSession() as session:
        with capture_logs() as lines:
            async with session.get(f"http://{place}/") as response:
                assert response.status == status
    assert [(line["event"], line["peer"], line["server"]) for line in lines] == logged


@pytest.mark.rule("security: a request body is never decompressed, and left in the socket unless it is a review's")
@pytest.mark.parametrize("status", [200, 404])
async def test_connection_with_an_unread_body_is_closed(status: int) -> None:
    async def leave(_request: web.Request) -> web.Response:
        if status != HTTPStatus.OK:
            raise web.HTTPNotFound
        return web.Response()

    app = web.Application()
    app.router.add_post("/", leave)
    async with serving(new_server(app)) as place, aiohttp.ClientSession() as session:
        async with session.post(f"http://{place}/", data=b"complete") as response:
            assert (response.status, response.headers.get("Connection")) == (status, "close")
        async with session.post(f"http://{place}/") as response:
            assert (response.status, response.headers.get("Connection")) == (status, None)
