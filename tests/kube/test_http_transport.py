from __future__ import annotations

import asyncio
import gzip
import ssl
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hack.control_plane.certificates import Authority, server_context
from tests.support.server.http_api import Handler, PreparedSource, config_of, connected, serving
from upgrade_manager.kube.config import ClientConfig, ConfigError, TlsConfig
from upgrade_manager.kube.errors import REFUSED, Transient
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.transport import Request

pytestmark = pytest.mark.real_loop

GET = Request(method="GET", path="/")


@dataclass
class Responses:
    codes: list[tuple[str, str]] = field(default_factory=list)

    def on_response(self, method: str, host: str, code: str, seconds: float) -> None:
        assert ":" in host
        assert seconds >= 0
        self.codes.append((method, code))


async def status_of(config: ClientConfig) -> int:
    async with HttpTransport(config) as transport:
        return (await transport.send(GET)).status


def loads_of(config: ClientConfig) -> int:
    assert isinstance(config.source, PreparedSource)
    return config.source.loads


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


async def test_request_is_sent_unchanged() -> None:
    seen = Responses()
    async with serving(echo) as url:
        config = config_of(url + "/prefix", authorization="Bearer t")
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
    assert seen.codes == [("PATCH", "200")]


async def test_impersonation_is_sent_with_the_own_credentials_only() -> None:
    async def handler(request: web.Request) -> web.Response:
        sent = [value for name, value in request.headers.items() if name.lower().startswith("impersonate-")]
        return web.Response(text=" ".join(sent))

    as_jane = (("impersonate-user", "jane"), ("impersonate-group", "dev"), ("impersonate-group", "ops"))
    async with serving(handler) as url, HttpTransport(config_of(url, impersonation=as_jane)) as transport:
        assert (await transport.send(GET)).body == b"jane dev ops"
        assert (await transport.send(replace(GET, headers={"authorization": "Bearer other"}))).body == b""


@pytest.mark.parametrize(
    ("accepted", "headers", "statuses", "loads"),
    [
        pytest.param("Bearer other", {"authorization": "Bearer other"}, [200] * 3, 0, id="of the request"),
        pytest.param("Bearer own", {"authorization": "Bearer other"}, [401] * 3, 0, id="of the request, rejected"),
        pytest.param("Bearer never", {}, [401] * 3, 1, id="rejected, although renewed"),
    ],
)
async def test_rejected_authorization_is_renewed_once_unless_given(
    accepted: str, headers: dict[str, str], statuses: list[int], loads: int
) -> None:
    async with serving(accepting(accepted)) as url:
        config = config_of(url, config_of(url, authorization="Bearer own"), authorization="Bearer own")
        async with HttpTransport(config) as transport:
            responses = [await transport.send(replace(GET, headers=headers)) for _ in statuses]
    assert ([response.status for response in responses], loads_of(config)) == (statuses, loads)


async def test_any_status_is_a_response_and_redirects_are_kept() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=int(request.path[1:]), headers={"location": "/200", "retry-after": "3"})

    async with connected(handler) as transport:
        for status in (302, 404, 429, 500):
            response = await transport.send(Request(method="GET", path=f"/{status}"))
            assert (response.status, response.headers["retry-after"]) == (status, "3")


async def test_headers_are_joined_and_bodies_decompressed() -> None:
    async def handler(_: web.Request) -> web.Response:
        response = web.Response(body=gzip.compress(b"x" * 1000), headers={"content-encoding": "gzip"})
        for text in ("one", "two"):
            response.headers.add("Warning", f'299 - "{text}"')
        return response

    async with connected(handler) as transport:
        response = await transport.send(GET)
    assert response.headers["warning"] == '299 - "one", 299 - "two"'
    assert response.body == b"x" * 1000


async def test_absent_server_is_a_refused_connection() -> None:
    seen = Responses()
    async with HttpTransport(config_of("http://127.0.0.1:1"), on_response=seen.on_response) as transport:
        with pytest.raises(Transient, match="cannot be reached: Connection refused") as caught:
            await transport.send(GET)
        assert caught.value.reason == REFUSED
        with pytest.raises(Transient):
            async with transport.open(GET):
                pass
    assert seen.codes == [("GET", "<error>")] * 2


async def test_stream_ends_with_the_server() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"X-Kind": "watch"})
        await response.prepare(request)
        for piece in (b"a", b"b"):
            await asyncio.sleep(0.01)
            await response.write(piece)
        return response

    async with connected(handler) as transport, transport.open(GET) as stream:
        assert (stream.status, stream.headers["x-kind"]) == (200, "watch")
        assert b"".join([chunk async for chunk in stream.chunks()]) == b"ab"


@pytest.mark.parametrize("is_tls", [True, False], ids=["TLS", "plain"])
async def test_broken_connection_is_transient(authority: Authority, context: ssl.SSLContext, *, is_tls: bool) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if request.method == "GET":
            await response.prepare(request)
            await response.write(b"a")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with (
        serving(handler, context if is_tls else None) as url,
        HttpTransport(config_of(url, tls=trusting(authority))) as transport,
    ):
        with pytest.raises(Transient, match="the connection to the API server failed") as caught:
            await transport.send(Request(method="POST", path="/"))
        assert caught.value.reason == ""
        async with transport.open(GET) as stream:
            chunks = aiter(stream.chunks())
            assert await anext(chunks) == b"a"
            with pytest.raises(Transient) as caught:
                await anext(chunks)
        assert caught.value.reason == ""


async def test_many_watches_do_not_block_requests() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if "watch" in request.query:
            await asyncio.sleep(30)
        return response

    watch = Request(method="GET", path="/", query=(("watch", "1"),))
    async with connected(handler) as transport:
        watches = [transport.open(watch) for _ in range(40)]
        for opened in watches:
            await opened.__aenter__()
        assert (await transport.send(GET)).status == 200
        for opened in watches:
            await opened.__aexit__(None, None, None)


async def test_missing_socket_option_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("socket.TCP_USER_TIMEOUT")
    async with serving(echo) as url:
        assert await status_of(config_of(url)) == 200


def accepting(token: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers.get("authorization") == token else 401)

    return handler


async def test_rejected_token_is_renewed_and_the_request_resent() -> None:
    seen = Responses()
    async with serving(accepting("Bearer new")) as url:
        newer = config_of(url, authorization="Bearer new")
        config = config_of(url, newer, authorization="Bearer old")
        async with HttpTransport(config, on_response=seen.on_response) as transport:
            responses = await asyncio.gather(*(transport.send(Request(method="POST", path="/")) for _ in range(5)))
            assert [response.status for response in responses] == [200] * 5
            async with transport.open(GET) as stream:
                assert stream.status == 200
    assert loads_of(config) == 1
    assert seen.codes.count(("POST", "200")) == 5


@pytest.fixture
def authority() -> Authority:
    return Authority(now=datetime.now(UTC))


@pytest.fixture
def context(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    return server_context(authority.server(), tmp_path)


def trusting(authority: Authority, **options: Any) -> TlsConfig:
    return TlsConfig(ca_data=authority.certificate.decode(), **options)


async def test_only_a_server_of_a_trusted_authority_is_accepted(authority: Authority, context: ssl.SSLContext) -> None:
    async with serving(echo, context) as url:
        assert await status_of(config_of(url, tls=trusting(authority))) == 200
        with pytest.raises(Transient, match="certificate"):
            await status_of(config_of(url, tls=trusting(Authority(now=datetime.now(UTC)))))


async def test_tls_server_name_or_insecure_replaces_the_host_check(authority: Authority, tmp_path: Path) -> None:
    async with serving(echo, server_context(authority.server(["elsewhere"]), tmp_path)) as url:
        assert await status_of(config_of(url, tls=TlsConfig(insecure=True))) == 200
        assert await status_of(config_of(url, tls=trusting(authority, server_name="elsewhere"))) == 200
        with pytest.raises(Transient, match="certificate"):
            await status_of(config_of(url, tls=trusting(authority)))


async def test_client_certificate_is_sent(authority: Authority, context: ssl.SSLContext, tmp_path: Path) -> None:
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    cert, key = authority.server(["client"]).write(tmp_path, "client")
    async with serving(echo, context) as url:
        tls = trusting(authority, cert_file=str(cert), key_file=str(key))
        assert await status_of(config_of(url, tls=tls)) == 200


async def test_invalid_certificates_are_a_config_error_at_start(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no certificate")
    tls = TlsConfig(cert_file=str(tmp_path / "x"), key_file=str(tmp_path / "x"))
    with pytest.raises(ConfigError, match="certificates"):
        async with HttpTransport(config_of("https://127.0.0.1:1", tls=tls)):
            pass


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def test_closing_a_watch_does_not_wait_for_a_dead_server(authority: Authority, context: ssl.SSLContext) -> None:
    over = asyncio.Event()

    async def deaf(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}")
        assert isinstance(request.transport, asyncio.ReadTransport)
        request.transport.pause_reading()
        await over.wait()
        request.transport.close()
        request.transport.resume_reading()
        return response

    async with serving(deaf, context) as url:
        config = config_of(url, tls=trusting(authority))
        async with HttpTransport(config) as transport:
            before = open_files()
            async with transport.open(GET) as stream:
                assert await anext(stream.chunks()) == b"{}"
            for _ in range(5):
                await asyncio.sleep(0)
            # The server's end is still open, and only that.
            assert open_files() == before + 1
        over.set()


async def test_rotated_ca_makes_a_new_tls_context(authority: Authority, context: ssl.SSLContext) -> None:
    other = trusting(Authority(now=datetime.now(UTC)))
    async with serving(accepting("Bearer new"), context) as url:
        newer = config_of(url, authorization="Bearer new", tls=trusting(authority))
        stale = config_of(url, newer, authorization="Bearer old", tls=other, max_age=0.0)
        assert await status_of(stale) == 200
