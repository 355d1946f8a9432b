from __future__ import annotations

import asyncio
import gzip
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.kube_server import event, initial_end, node
from tests.support.kube_tls import Authority
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.config import ClientConfig, ConfigError, TlsConfig
from upgrade_manager.kube.errors import REFUSED, Transient
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.objects import name
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import NODES
from upgrade_manager.kube.transport import Request

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

pytestmark = pytest.mark.real_loop


@dataclass
class Snapshots:
    """A source that hands out prepared connections, one after the other, the last one for ever."""

    connections: list[ClientConfig | Exception] = field(default_factory=list)
    asked: int = 0

    async def load(self) -> ClientConfig:
        self.asked += 1
        found = self.connections[min(self.asked, len(self.connections)) - 1]
        if isinstance(found, Exception):
            raise found
        return found


@dataclass
class Seen:
    answers: list[tuple[str, str]] = field(default_factory=list)

    def on_response(self, method: str, host: str, code: str, seconds: float) -> None:
        assert ":" in host
        assert seconds >= 0
        self.answers.append((method, code))


def connection(server: str, *newer: ClientConfig | Exception, **options: Any) -> ClientConfig:
    source = Snapshots(list(newer))
    return ClientConfig(server=server, source=source, **{"tls": TlsConfig(), **options})


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server(ssl=tls)
    try:
        yield str(server.make_url("/")).rstrip("/")
    finally:
        await server.close()


async def echo(request: web.Request) -> web.Response:
    return web.json_response(
        {
            "method": request.method,
            "raw": request.raw_path,
            "authorization": request.headers.get("authorization"),
            "type": request.headers.get("content-type"),
            "body": await request.text(),
        },
        headers={"X-Mixed-Case": "Yes"},
    )


async def test_a_request_arrives_as_it_was_made() -> None:
    seen = Seen()
    async with serving(echo) as url:
        config = connection(url + "/prefix", authorization="Bearer t")
        async with HttpTransport(config, on_response=seen.on_response) as transport:
            request = Request(
                method="PATCH",
                path="/api/v1/nodes/a%2Fb",
                query=(("labelSelector", "a=b,c in (d)"), ("x", "1"), ("x", "2")),
                headers={"content-type": "application/merge-patch+json"},
                body=b'{"a":1}',
            )
            response = await transport.send(request)
    assert response.status == 200
    assert response.headers["x-mixed-case"] == "Yes"
    assert response.body == (
        b'{"method": "PATCH", "raw": "/prefix/api/v1/nodes/a%2Fb?labelSelector=a%3Db%2Cc+in+%28d%29&x=1&x=2", '
        b'"authorization": "Bearer t", "type": "application/merge-patch+json", "body": "{\\"a\\":1}"}'
    )
    assert seen.answers == [("PATCH", "200")]


async def test_a_gateway_passes_on_the_credentials_of_its_caller() -> None:
    async with serving(echo) as url:
        config = connection(url, authorization="Bearer own")
        async with HttpTransport(config) as transport:
            response = await transport.send(Request(method="GET", path="/", headers={"authorization": "Bearer other"}))
    assert b"Bearer other" in response.body


async def test_credentials_of_a_caller_that_are_refused_are_his_to_renew() -> None:
    async with serving(guarded("Bearer own")) as url:
        config = connection(url, connection(url, authorization="Bearer newer"), authorization="Bearer own")
        async with HttpTransport(config) as transport:
            response = await transport.send(Request(method="GET", path="/", headers={"authorization": "Bearer other"}))
    assert response.status == 401
    assert isinstance(config.source, Snapshots)
    assert config.source.asked == 0


async def test_any_status_is_an_answer_and_redirects_are_not_followed() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=int(request.path[1:]), headers={"location": "/200", "retry-after": "3"})

    async with serving(handler) as url, HttpTransport(connection(url)) as transport:
        for status in (302, 404, 429, 500):
            response = await transport.send(Request(method="GET", path=f"/{status}"))
            assert (response.status, response.headers["retry-after"]) == (status, "3")


async def test_a_header_that_comes_twice_is_one_list() -> None:
    async def warning(_: web.Request) -> web.Response:
        answer = web.Response()
        for text in ("one", "two"):
            answer.headers.add("Warning", f'299 - "{text}"')
        return answer

    async with serving(warning) as url, HttpTransport(connection(url)) as transport:
        response = await transport.send(Request(method="GET", path="/"))
        assert response.headers["warning"] == '299 - "one", 299 - "two"'


async def test_compressed_lists_are_decompressed() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(b"x" * 1000), headers={"content-encoding": "gzip"})

    async with serving(handler) as url, HttpTransport(connection(url)) as transport:
        assert (await transport.send(Request(method="GET", path="/"))).body == b"x" * 1000


async def test_a_server_that_is_not_there_is_refused() -> None:
    seen = Seen()
    async with HttpTransport(connection("http://127.0.0.1:1"), on_response=seen.on_response) as transport:
        with pytest.raises(Transient, match="cannot be reached") as caught:
            await transport.send(Request(method="GET", path="/"))
        assert caught.value.reason == REFUSED
        with pytest.raises(Transient):
            async with transport.open(Request(method="GET", path="/")):
                pass
    assert seen.answers == [("GET", "<error>")] * 2


async def test_a_connection_that_breaks_is_transient() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with serving(handler) as url, HttpTransport(connection(url)) as transport:
        with pytest.raises(Transient, match="the connection to the API server failed") as caught:
            await transport.send(Request(method="POST", path="/"))
        assert caught.value.reason == ""


async def test_a_stream_outlives_the_time_for_its_headers_and_ends_with_the_server() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"X-Kind": "watch"})
        await response.prepare(request)
        for piece in (b"a", b"b"):
            await asyncio.sleep(0.1)
            await response.write(piece)
        return response

    request = Request(method="GET", path="/")
    async with (
        serving(handler) as url,
        HttpTransport(connection(url)) as transport,
        transport.open(request) as stream,
    ):
        assert (stream.status, stream.headers["x-kind"]) == (200, "watch")
        assert b"".join([chunk async for chunk in stream.chunks()]) == b"ab"


async def test_a_broken_stream_is_transient() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"a")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with (
        serving(handler) as url,
        HttpTransport(connection(url)) as transport,
        transport.open(Request(method="GET", path="/")) as stream,
    ):
        chunks = aiter(stream.chunks())
        assert await anext(chunks) == b"a"
        with pytest.raises(Transient) as caught:
            await anext(chunks)
    assert caught.value.reason == ""


async def test_many_watches_leave_room_for_requests() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if "watch" in request.query:
            await asyncio.sleep(30)
        return response

    watch = Request(method="GET", path="/", query=(("watch", "1"),))
    async with serving(handler) as url, HttpTransport(connection(url)) as transport:
        watches = [transport.open(watch) for _ in range(40)]
        for opened in watches:
            await opened.__aenter__()
        assert (await transport.send(Request(method="GET", path="/"))).status == 200
        for opened in watches:
            await opened.__aexit__(None, None, None)


async def test_a_system_without_one_of_the_socket_options_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("socket.TCP_USER_TIMEOUT")
    async with serving(echo) as url, HttpTransport(connection(url)) as transport:
        assert (await transport.send(Request(method="GET", path="/"))).status == 200


def guarded(good: str, status: int = 200) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=status if request.headers.get("authorization") == good else 401)

    return handler


async def test_a_refused_token_is_renewed_and_the_request_sent_once_more() -> None:
    seen = Seen()
    async with serving(guarded("Bearer new")) as url:
        newer = connection(url, authorization="Bearer new")
        config = connection(url, newer, authorization="Bearer old")
        async with HttpTransport(config, on_response=seen.on_response) as transport:
            answers = await asyncio.gather(*(transport.send(Request(method="POST", path="/")) for _ in range(5)))
            assert [answer.status for answer in answers] == [200] * 5
            async with transport.open(Request(method="GET", path="/")) as stream:
                assert stream.status == 200
    source = config.source
    assert isinstance(source, Snapshots)
    assert source.asked == 1
    assert seen.answers.count(("POST", "200")) == 5


async def test_a_token_that_stays_refused_is_an_answer_and_keeps_no_source_busy() -> None:
    async with serving(guarded("Bearer never")) as url:
        same = connection(url, authorization="Bearer old")
        config = connection(url, same, authorization="Bearer old")
        async with HttpTransport(config) as transport:
            for _ in range(3):
                assert (await transport.send(Request(method="GET", path="/"))).status == 401
    source = config.source
    assert isinstance(source, Snapshots)
    assert source.asked == 1


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def test_a_server_of_the_right_authority_is_trusted(authority: Authority) -> None:
    async with serving(echo, authority.server_context()) as url:
        config = connection(url, tls=TlsConfig(ca_data=authority.cert))
        async with HttpTransport(config) as transport:
            assert (await transport.send(Request(method="GET", path="/"))).status == 200


async def test_a_server_of_another_authority_is_not(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    async with serving(echo, authority.server_context()) as url:
        config = connection(url, tls=TlsConfig(ca_data=other.cert))
        async with HttpTransport(config) as transport:
            with pytest.raises(Transient, match="certificate"):
                await transport.send(Request(method="GET", path="/"))


async def test_verification_can_be_turned_off(authority: Authority) -> None:
    async with serving(echo, authority.server_context("elsewhere")) as url:
        config = connection(url, tls=TlsConfig(insecure=True))
        async with HttpTransport(config) as transport:
            assert (await transport.send(Request(method="GET", path="/"))).status == 200


async def test_another_name_can_be_expected_of_the_server(authority: Authority) -> None:
    async with serving(echo, authority.server_context("elsewhere")) as url:
        tls = TlsConfig(ca_data=authority.cert, server_name="elsewhere")
        async with HttpTransport(connection(url, tls=tls)) as transport:
            assert (await transport.send(Request(method="GET", path="/"))).status == 200
        wrong = replace(tls, server_name="")
        async with HttpTransport(connection(url, tls=wrong)) as transport:
            with pytest.raises(Transient, match="certificate"):
                await transport.send(Request(method="GET", path="/"))


async def test_a_client_certificate_is_shown(authority: Authority) -> None:
    pair = authority.sign("client")
    async with serving(echo, authority.server_context(clients=True)) as url:
        tls = TlsConfig(ca_data=authority.cert, cert_file=str(pair.cert_file), key_file=str(pair.key_file))
        async with HttpTransport(connection(url, tls=tls)) as transport:
            assert (await transport.send(Request(method="GET", path="/"))).status == 200


async def test_certificates_that_are_of_no_use_are_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no certificate")
    tls = TlsConfig(cert_file=str(tmp_path / "x"), key_file=str(tmp_path / "x"))
    with pytest.raises(ConfigError, match="certificates"):
        async with HttpTransport(connection("https://127.0.0.1:1", tls=tls)):
            pass


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def test_a_watch_that_is_left_takes_no_leave_of_a_server_that_hears_nothing(authority: Authority) -> None:
    over = asyncio.Event()

    async def deaf(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"{}")
        assert isinstance(request.transport, asyncio.ReadTransport)
        request.transport.pause_reading()
        await over.wait()
        request.transport.close()
        request.transport.resume_reading()
        return answer

    async with serving(deaf, authority.server_context()) as url:
        config = connection(url, tls=TlsConfig(ca_data=authority.cert))
        async with HttpTransport(config) as transport:
            before = open_files()
            async with transport.open(Request(method="GET", path="/")) as stream:
                assert await anext(stream.chunks()) == b"{}"
            for _ in range(5):
                await asyncio.sleep(0)
            # The server's end is still open, and only that.
            assert open_files() == before + 1
        over.set()


async def test_a_changed_authority_makes_a_new_context(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    async with serving(guarded("Bearer new"), authority.server_context()) as url:
        newer = connection(url, authorization="Bearer new", tls=TlsConfig(ca_data=authority.cert))
        stale = connection(url, newer, authorization="Bearer old", tls=TlsConfig(ca_data=other.cert), max_age=0.0)
        async with HttpTransport(stale) as transport:
            assert (await transport.send(Request(method="GET", path="/"))).status == 200


async def test_an_informer_follows_a_server_through_cut_connections(authority: Authority) -> None:
    written = asyncio.Event()
    watches: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        watches.append(request.query.get("resourceVersion", "newest"))
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        if "sendInitialEvents" in request.query:
            await response.write(event("ADDED", node("a", 1)) + initial_end(5) + event("ADDED", node("b", 6)))
            await written.wait()
            assert request.transport is not None
            request.transport.abort()
            return response
        await response.write(event("DELETED", node("a", 7)))
        await asyncio.sleep(30)
        return response

    random = Random(1)
    async with serving(handler, authority.server_context()) as url:
        config = connection(url, tls=TlsConfig(ca_data=authority.cert))
        async with HttpTransport(config) as transport:
            informer = Informer(
                Client(transport, user_agent="test", random=random), Selection(resource=NODES), random=random
            )
            task = asyncio.create_task(informer.run())
            assert await informer.wait_for_version("6")
            assert len(informer.store) == 2
            written.set()
            assert await informer.wait_for_version("7")
            assert [name(obj) for obj in informer.store.list()] == ["b"]
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert watches == ["newest", "6"]
