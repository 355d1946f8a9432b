from __future__ import annotations

import asyncio
import gzip

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Terminal, Transient
from upgrade_manager.pipeline.repository_client import HttpFetcher

pytestmark = pytest.mark.real_loop


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
    async with TestServer(app, host="127.0.0.1") as server, HttpFetcher(user_agent="manager/1") as fetcher:
        url = str(server.make_url("/")).rstrip("/") + path
        response = await fetcher.fetch(url, limit=limit, timeout=timeout)
        return response.status, response.body, response.headers.get("x-kind", "")


async def test_a_file_and_what_moved_on_the_same_host() -> None:
    assert await fetched("/iso//harvester-release.yaml") == (200, b"os: manager/1", "release")
    assert (await fetched("/moved"))[:2] == (200, b"os: manager/1")


async def test_any_status_is_an_answer() -> None:
    assert (await fetched("/absent"))[0] == 404
    assert (await fetched("/nowhere"))[0] == 302


async def test_compressed_files_are_measured_by_what_is_in_them() -> None:
    assert len((await fetched("/zipped", limit=100_000))[1]) == 100_000
    with pytest.raises(Terminal, match="longer than 99999 bytes"):
        await fetched("/zipped", limit=99_999)


@pytest.mark.parametrize(("path", "words"), [("/away", "another host"), ("/circle", "more than 5 times")])
async def test_redirects_that_are_not_followed(path: str, words: str) -> None:
    with pytest.raises(Terminal, match=words):
        await fetched(path)


async def test_no_complete_answer_is_transient() -> None:
    with pytest.raises(Transient, match="did not come within") as caught:
        await fetched("/slow", timeout=0.05)
    assert caught.value.reason == TIMED_OUT
    with pytest.raises(Transient, match="broke off"):
        await fetched("/broken")
    async with HttpFetcher(user_agent="x") as fetcher:
        with pytest.raises(Transient, match="cannot be reached") as caught:
            await fetcher.fetch("http://127.0.0.1:1/", limit=1, timeout=5)
        assert caught.value.reason == REFUSED


@pytest.mark.parametrize("url", ["no url", "http://", "http://[x", "ftp://h/x", ""])
async def test_what_is_no_url_is_terminal(url: str) -> None:
    async with HttpFetcher(user_agent="x") as fetcher:
        with pytest.raises(Terminal, match="is no URL"):
            await fetcher.fetch(url, limit=1, timeout=5)
