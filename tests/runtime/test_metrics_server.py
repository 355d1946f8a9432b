from __future__ import annotations

import gzip
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter, Metric

from tests.support.managers.runtime import Reviews, serving
from tests.support.server.tokens import token_of
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.metrics_auth import UNAUTHORIZED, Decision, MetricsAuthorizer
from upgrade_manager.runtime.metrics_server import plain_metrics_server, secure_metrics_server
from upgrade_manager.runtime.peers import Peers
from upgrade_manager.runtime.review_shares import REVIEW_BURST

pytestmark = pytest.mark.real_loop

ANY_PORT = ("127.0.0.1", 0)


def now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def get(url: str, **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
    session = aiohttp.ClientSession(
        auto_decompress=False,
        headers=headers,
        skip_auto_headers=() if "Accept-Encoding" in headers else ("Accept-Encoding",),
    )
    async with session, session.get(url, ssl=False) as response:
        yield response


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        ("", "text/plain; version=", False),
        ("*/*", "text/plain; version=", False),
        ("application/openmetrics-text;version=abc", "text/plain; version=", False),
        ("text/plain;version=x;escaping", "text/plain; version=", False),
        ("application/openmetrics-text; version=1.0.0,*/*;q=0.1", "application/openmetrics-text; version=1.0.0", True),
    ],
)
async def test_accept_header_decides_the_format(accept: str, content_type: str, *, end: bool) -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.reconciles("plans")
    server = plain_metrics_server(metrics, address=ANY_PORT)
    async with serving(server) as place, get(f"http://{place}/metrics", Accept=accept) as response:
        text = await response.text()
    assert response.status == 200
    assert response.headers["Content-Type"].startswith(content_type)
    assert 'controller_runtime_reconcile_total{controller="plans",result="success"} 0.0' in text
    assert text.endswith("# EOF\n") is end


async def test_responses_are_compressed_on_request() -> None:
    metrics = Metrics(CollectorRegistry())
    server = plain_metrics_server(metrics, address=ANY_PORT)
    async with serving(server) as place, get(f"http://{place}/metrics", **{"Accept-Encoding": "gzip"}) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert b"event_loop_lag_seconds" in gzip.decompress(await response.read())


async def test_computed_gauges_are_refreshed_before_each_scrape() -> None:
    metrics = Metrics(CollectorRegistry())
    scrapes = Counter("scrapes", "Scrapes.", registry=metrics.registry)
    metrics.on_scrape(scrapes.inc)
    async with serving(plain_metrics_server(metrics, address=ANY_PORT)) as place:
        for count in (1, 2):
            async with get(f"http://{place}/metrics") as response:
                assert f"scrapes_total {count}.0" in await response.text()


@pytest.mark.parametrize(
    ("path", "token", "status", "text"),
    [
        ("metrics", "", 401, "Unauthorized\n"),
        ("metrics", "opaque", 401, "Unauthorized\n"),
        ("metrics", token_of("good-guest"), 403, "Authorization denied for user guest\n"),
        ("metrics", token_of("good-prometheus"), 200, "event_loop_lag_seconds"),
        ("metrics/else", token_of("good-prometheus"), 404, ""),
    ],
    ids=["none", "opaque", "without the right", "with the right", "another path"],
)
async def test_secure_server_authorizes_requests(path: str, token: str, status: int, text: str) -> None:
    server = secure_metrics_server(Metrics(CollectorRegistry()), address=ANY_PORT, client=Reviews().client(), now=now)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with serving(server) as place, get(f"https://{place}/{path}", **headers) as response:
        assert response.status == status
        assert text in await response.text()


async def test_made_up_tokens_are_counted_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is refilled while the test runs.
    monkeypatch.setattr("upgrade_manager.runtime.review_shares.REVIEW_INTERVAL", 3600)
    server = secure_metrics_server(Metrics(CollectorRegistry()), address=ANY_PORT, client=Reviews().client(), now=now)
    statuses = []
    async with serving(server) as place:
        connector = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
        async with aiohttp.ClientSession(connector=connector) as stranger:
            for number in range(REVIEW_BURST + 1):
                headers = {"Authorization": f"Bearer {token_of(f'made-up-{number}')}"}
                async with stranger.get(f"https://{place}/metrics", headers=headers, ssl=False) as response:
                    statuses.append(response.status)
        authorization = f"Bearer {token_of('good-prometheus')}"
        async with get(f"https://{place}/metrics", Authorization=authorization) as response:
            assert response.status == 200
    assert statuses == [401] * REVIEW_BURST + [429]


async def test_metrics_are_rendered_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics(CollectorRegistry())
    rendering: list[int] = []

    def collect() -> list[Metric]:
        rendering.append(threading.get_ident())
        return []

    monkeypatch.setattr(metrics.registry, "collect", collect)
    server = plain_metrics_server(metrics, address=ANY_PORT)
    async with serving(server) as place, get(f"http://{place}/metrics") as response:
        assert response.status == 200
    assert len(rendering) == 1
    assert threading.get_ident() not in rendering


async def test_hosts_of_an_ipv6_network_share_the_reviews_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    peers: list[str] = []

    async def authorize(_self: MetricsAuthorizer, _header: str, *, peer: str) -> Decision:
        peers.append(peer)
        return UNAUTHORIZED

    monkeypatch.setattr(MetricsAuthorizer, "authorize", authorize)
    monkeypatch.setattr(Peers, "of", lambda self, _transport: self.find("fd00:52::7"))
    server = secure_metrics_server(Metrics(CollectorRegistry()), address=ANY_PORT, client=Reviews().client(), now=now)
    async with serving(server) as place, get(f"https://{place}/metrics") as response:
        assert response.status == 401
    assert peers == ["fd00:52::/64"]
