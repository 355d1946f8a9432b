"""Requests to servers of ISOs on loopback."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from hack.control_plane.certificates import Authority, server_context
from webhook.preflight import iso_server
from webhook.preflight.iso_server import HttpIsoServer, IsoResponse, Unreachable

pytestmark = pytest.mark.real_loop

SIZE = 7 << 30
LENGTH = {"content-length": str(SIZE)}
FIRST_BYTE = {"content-range": f"bytes 0-0/{SIZE}"}


async def respond(request: web.Request) -> web.StreamResponse:  # one a path
    is_head = request.method == "HEAD"
    match request.path:
        case "/head" if is_head:
            return web.Response(headers=LENGTH)
        case "/moved":
            return web.Response(status=302, headers={"location": "/head"})
        case "/ranged" if not is_head:
            assert request.headers["range"] == "bytes=0-0"
            return web.Response(status=206, body=b"\0", headers=FIRST_BYTE)
        case "/signed":
            return web.Response(status=403) if is_head else web.Response(status=206, headers={"content-range": "?"})
        case "/whole" if not is_head:
            response = web.StreamResponse(headers=LENGTH)
            await response.prepare(request)
            return response
        case "/slow":
            await asyncio.sleep(30)
        case "/broken":
            assert request.transport is not None
            request.transport.abort()
    return web.Response(status=405 if is_head else 404)


async def asked(path: str) -> IsoResponse:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", respond)
    async with TestServer(app, host="127.0.0.1") as server, HttpIsoServer(user_agent="preflight/1") as client:
        return await client.ask(str(server.make_url(path)))


@pytest.mark.rule("admission: preflight asks an ISO's server that refuses HEAD for one byte")
@pytest.mark.parametrize(
    ("path", "status", "size"),
    [
        pytest.param("/head", 200, SIZE, id="HEAD"),
        pytest.param("/moved", 200, SIZE, id="redirect"),
        pytest.param("/ranged", 206, SIZE, id="range"),
        pytest.param("/signed", 206, None, id="range without a size"),
        pytest.param("/whole", 200, SIZE, id="range that is ignored"),
        pytest.param("/missing", 404, 0, id="missing"),
    ],
)
async def test_status_and_size_are_returned(path: str, status: int, size: int | None) -> None:
    found = await asked(path)
    assert (found.status, found.size) == (status, size)


async def test_silent_server_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iso_server, "TIMEOUT", 0.2)
    with pytest.raises(Unreachable, match=r"^no response within 0\.2 s$"):
        await asked("/slow")


async def test_broken_connection_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=r"^connection broken"):
        await asked("/broken")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        pytest.param("http://127.0.0.1:1/x.iso", "Connection refused", id="refused"),
        pytest.param("ftp://example.invalid/x.iso", "not a valid HTTP URL", id="another scheme"),
        pytest.param("releases/x.iso", "not a valid HTTP URL", id="no URL"),
    ],
)
async def test_url_without_a_server_is_unreachable(url: str, reason: str) -> None:
    async with HttpIsoServer(user_agent="preflight/1") as client:
        with pytest.raises(Unreachable) as caught:
            await client.ask(url)
    assert reason in str(caught.value)


@pytest.mark.rule("admission: preflight fails for an ISO that cannot be downloaded, with status or error")
async def test_untrusted_certificate_is_named(tmp_path: Path) -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", respond)
    server = TestServer(app, host="127.0.0.1", scheme="https")
    async with HttpIsoServer(user_agent="preflight/1") as client:
        await server.start_server(ssl=server_context(Authority(now=datetime.now(UTC)).server(), tmp_path))
        try:
            with pytest.raises(Unreachable) as caught:
                await client.ask(str(server.make_url("/head")))
        finally:
            await server.close()
    assert str(caught.value).startswith("TLS: certificate verify failed: ")


async def test_server_without_tls_is_named() -> None:
    app = web.Application()
    async with TestServer(app, host="127.0.0.1") as server, HttpIsoServer(user_agent="preflight/1") as client:
        with pytest.raises(Unreachable, match=r"^TLS: "):
            await client.ask(str(server.make_url("/head")).replace("http:", "https:"))
