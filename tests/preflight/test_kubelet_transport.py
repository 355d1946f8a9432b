"""Requests over TLS on loopback: who gets the token, and how much is read."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hack.control_plane.certificates import Authority, server_context
from upgrade_manager.kube.config import ClientConfig, TlsConfig
from upgrade_manager.kube.errors import REFUSED, UNTRUSTED, Transient
from upgrade_manager.kube.transport import Response
from upgrade_manager.preflight.kubelet_transport import HttpKubeletTransport

pytestmark = pytest.mark.real_loop

HOST = "127.0.0.1"
CLUSTER = Authority(now=datetime.now(UTC))
OTHER = Authority(now=datetime.now(UTC))
#: 8 MiB of zeros, packed.
BOMB = gzip.compress(b"\0" * (8 << 20))


@dataclass
class Source:
    """Loads the configuration of a service account."""

    tokens: list[str] = field(default_factory=lambda: ["one"])

    async def load(self) -> ClientConfig:
        config = ClientConfig(
            server="https://api.invalid:6443",
            tls=TlsConfig(ca_data=CLUSTER.certificate.decode()),
            source=self,
            authorization=f"Bearer {self.tokens[0]}",
        )
        return replace(config, **self.changes)

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Kubelet:
    """A TLS server that records the Authorization header of each request."""

    url: str = ""
    accepted: str = "Bearer one"
    seen: list[str] = field(default_factory=list)

    async def respond(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request.headers.get("authorization", ""))
        if request.headers.get("authorization") != self.accepted:
            return web.Response(status=401, body=b"Unauthorized" * 1000)
        if request.path == "/redirect":
            return web.Response(status=307, headers={"location": request.query["to"]})
        if request.path == "/bomb":
            return web.Response(body=BOMB, headers={"content-encoding": "gzip"})
        return web.Response(body=b"x" * int(request.query.get("size", 2)))


@asynccontextmanager
async def served(
    folder: Path, *, authority: Authority = CLUSTER, names: tuple[str, ...] = (HOST,)
) -> AsyncIterator[Kubelet]:
    kubelet, app = Kubelet(), web.Application()
    app.router.add_get("/{path:.*}", kubelet.respond)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0, ssl_context=server_context(authority.server(names), folder)).start()
    kubelet.url = f"https://{HOST}:{runner.addresses[0][1]}"
    try:
        yield kubelet
    finally:
        await runner.cleanup()


async def fetch(source: Source, *urls: str, limit: int = 1000) -> list[Response]:
    async with HttpKubeletTransport(await source.load(), user_agent="test") as transport:
        return [await transport.fetch(url, limit=limit) for url in urls]


async def failure(source: Source, url: str) -> Transient:
    with pytest.raises(Transient) as caught:
        await fetch(source, url)
    return caught.value


@pytest.mark.rule(
    "pipeline: a kubelet gets the token only over TLS by the cluster's CA, and never by a proxy or a redirect"
)
async def test_token_is_sent_to_a_verified_kubelet(tmp_path: Path) -> None:
    async with served(tmp_path) as kubelet:
        responses = await fetch(Source(), f"{kubelet.url}/a", f"{kubelet.url}/b")
    assert [(one.status, one.body) for one in responses] == [(200, b"xx")] * 2
    assert kubelet.seen == ["Bearer one"] * 2


@pytest.mark.rule(
    "pipeline: a kubelet gets the token only over TLS by the cluster's CA, and never by a proxy or a redirect"
)
@pytest.mark.parametrize(
    ("authority", "names", "changes", "reason"),
    [
        pytest.param(OTHER, (HOST,), {}, "unable to get local issuer certificate", id="another CA"),
        pytest.param(CLUSTER, ("127.0.0.2", "node-1"), {}, "IP address mismatch", id="another address"),
        pytest.param(
            OTHER,
            (HOST,),
            {"tls": TlsConfig(ca_data=CLUSTER.certificate.decode(), insecure=True)},
            "issuer",
            id="insecure",
        ),
        pytest.param(
            CLUSTER,
            ("kubernetes",),
            {"tls": TlsConfig(ca_data=CLUSTER.certificate.decode(), server_name="kubernetes")},
            "IP address mismatch",
            id="the API server's name",
        ),
    ],
)
async def test_untrusted_kubelet_gets_nothing(
    tmp_path: Path, authority: Authority, names: tuple[str, ...], changes: dict[str, Any], reason: str
) -> None:
    async with served(tmp_path, authority=authority, names=names) as kubelet:
        error = await failure(Source(changes=changes), kubelet.url)
    assert error.reason == UNTRUSTED
    assert reason in str(error)
    assert kubelet.seen == []


@pytest.mark.rule(
    "pipeline: a kubelet gets the token only over TLS by the cluster's CA, and never by a proxy or a redirect"
)
async def test_no_proxy_and_no_redirect_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path) as kubelet, served(tmp_path) as other:
        for name in ("https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, other.url)
        source = Source(changes={"proxy": other.url, "impersonation": (("impersonate-user", "bob"),)})
        first, second = await fetch(source, kubelet.url, f"{kubelet.url}/redirect?to={other.url}/")
    assert (first.status, second.status) == (200, 307)
    assert other.seen == []


async def test_rotated_token_is_used_after_a_401(tmp_path: Path) -> None:
    source = Source()
    async with served(tmp_path) as kubelet:
        kubelet.accepted = "Bearer two"
        async with HttpKubeletTransport(await source.load(), user_agent="test") as transport:
            source.tokens = ["two"]
            response = await transport.fetch(kubelet.url, limit=100)
            assert (response.status, kubelet.seen) == (200, ["Bearer one", "Bearer two"])
            kubelet.accepted = "Bearer three"
            response = await transport.fetch(kubelet.url, limit=100)
    assert (response.status, len(response.body)) == (401, 1024)


async def test_body_is_limited_and_not_unpacked(tmp_path: Path) -> None:
    async with served(tmp_path) as kubelet:
        large, bomb = await fetch(Source(), f"{kubelet.url}/?size=5000000", f"{kubelet.url}/bomb", limit=1000)
    assert (large.body, bomb.body) == (b"x" * 1000, BOMB[:1000])


async def test_refused_connection_is_transient(tmp_path: Path) -> None:
    async with served(tmp_path) as kubelet:
        pass
    error = await failure(Source(), kubelet.url)
    assert (error.reason, str(error)) == (REFUSED, "connection refused")
