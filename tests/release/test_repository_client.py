from __future__ import annotations

import asyncio
import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from hack.control_plane.certificates import Authority, server_context
from tests.support.cluster.harvester import Files
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Terminal, Transient
from upgrade_manager.release.errors import NOT_A_RELEASE, BadRepository
from upgrade_manager.release.repository_client import HttpRepositoryClient, read_file

URL = "http://repo/file"


async def answer(request: web.Request) -> web.StreamResponse:  # noqa: PLR0911  # one a path
    match request.path:
        case "/iso//harvester-release.yaml":
            return web.Response(text=f"os: {request.headers['user-agent']}", headers={"X-Kind": "release"})
        case "/moved":
            return web.Response(status=302, headers={"location": "/iso//harvester-release.yaml"})
        case "/away":
            return web.Response(status=302, headers={"location": "http://elsewhere.example.org/"})
        case "/circle":
            return web.Response(status=301, headers={"location": "/circle"})
        case "/nowhere":
            return web.Response(status=302)
        case "/zipped":
            return web.Response(body=gzip.compress(b"x" * 100_000), headers={"content-encoding": "gzip"})
        case "/slow":
            await asyncio.sleep(30)
        case "/broken":
            response = web.StreamResponse(headers={"content-length": "100"})
            await response.prepare(request)
            assert request.transport is not None
            request.transport.abort()
    return web.Response(status=404)


async def fetched(path: str, *, limit: int = 1000, timeout: float = 5.0) -> tuple[int, bytes, str]:  # noqa: ASYNC109
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app, host="127.0.0.1") as server, HttpRepositoryClient(user_agent="manager/1") as client:
        url = str(server.make_url("/")).rstrip("/") + path
        response = await client.fetch(url, limit=limit, timeout=timeout)
        return response.status, response.body, response.headers.get("x-kind", "")


@pytest.mark.real_loop
async def test_redirects_on_the_same_host_are_followed() -> None:
    assert await fetched("/iso//harvester-release.yaml") == (200, b"os: manager/1", "release")
    assert (await fetched("/moved"))[:2] == (200, b"os: manager/1")


@pytest.mark.real_loop
async def test_every_status_is_returned() -> None:
    assert (await fetched("/absent"))[0] == 404
    assert (await fetched("/nowhere"))[0] == 302


@pytest.mark.real_loop
async def test_https_is_verified_by_the_authorities_of_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(now=datetime.now(UTC))
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    server = TestServer(app, host="127.0.0.1", scheme="https")
    async with HttpRepositoryClient(user_agent="manager/1") as client:
        await server.start_server(ssl=server_context(authority.server(), tmp_path))
        url = str(server.make_url("/")).rstrip("/") + "/moved"
        (tmp_path / "authorities.pem").write_bytes(authority.certificate)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities.pem"))
        assert (await client.fetch(url, limit=1000, timeout=5)).body == b"os: manager/1"
        monkeypatch.delenv("SSL_CERT_FILE")
        assert (await client.fetch(url, limit=1000, timeout=5)).status == 200
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    async with HttpRepositoryClient(user_agent="manager/1") as client:
        with pytest.raises(Transient, match="certificate"):
            await client.fetch(url, limit=1000, timeout=5)
    await server.close()


@pytest.mark.real_loop
async def test_limit_applies_to_the_decompressed_body() -> None:
    assert len((await fetched("/zipped", limit=100_000))[1]) == 100_000
    with pytest.raises(Terminal, match="exceeds 99999 bytes"):
        await fetched("/zipped", limit=99_999)


@pytest.mark.parametrize(("path", "message"), [("/away", "another host"), ("/circle", "more than 5 times")])
@pytest.mark.real_loop
async def test_refused_redirects_are_terminal(path: str, message: str) -> None:
    with pytest.raises(Terminal, match=message):
        await fetched(path)


@pytest.mark.real_loop
async def test_incomplete_response_is_transient() -> None:
    with pytest.raises(Transient, match="timed out after") as caught:
        await fetched("/slow", timeout=0.05)
    assert caught.value.reason == TIMED_OUT
    with pytest.raises(Transient, match="connection broken"):
        await fetched("/broken")
    async with HttpRepositoryClient(user_agent="x") as client:
        with pytest.raises(Transient, match="Cannot connect") as caught:
            await client.fetch("http://127.0.0.1:1/", limit=1, timeout=5)
        assert caught.value.reason == REFUSED


@pytest.mark.parametrize("url", ["no url", "http://", "http://[x", "ftp://h/x", ""])
@pytest.mark.real_loop
async def test_invalid_url_is_terminal(url: str) -> None:
    async with HttpRepositoryClient(user_agent="x") as client:
        with pytest.raises(Terminal, match="not a valid URL"):
            await client.fetch(url, limit=1, timeout=5)


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        pytest.param(b"text", b"text", id="file"),
        pytest.param(b"", b"", id="empty"),
        pytest.param(404, None, id="absent"),
    ],
)
async def test_absent_file_is_none(answer: bytes | int, content: bytes | None) -> None:
    assert await read_file(Files({"file": answer}), URL, limit=9) == content


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(Transient("reset"), "upgrade repository unreachable: reset", id="no response"),
        pytest.param(Terminal("redirects"), f"redirects; {NOT_A_RELEASE}", id="terminal"),
        pytest.param(500, f"{URL}: upgrade repository returned HTTP 500", id="server error"),
        pytest.param(301, f"{URL}: upgrade repository returned HTTP 301; {NOT_A_RELEASE}", id="redirect"),
        pytest.param(206, f"{URL}: upgrade repository returned HTTP 206; {NOT_A_RELEASE}", id="partial content"),
    ],
)
async def test_every_other_response_is_bad_repository(answer: int | Exception, text: str) -> None:
    with pytest.raises(BadRepository) as caught:
        await read_file(Files({"file": answer}), URL, limit=9)
    assert str(caught.value) == text
