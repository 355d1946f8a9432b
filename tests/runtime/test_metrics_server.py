from __future__ import annotations

import gzip
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from tests.support.runtime import Reviews, serving
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.metrics_server import plain_metrics_server, secure_metrics_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from prometheus_client import Metric


pytestmark = pytest.mark.real_loop

ANY_PORT = ("127.0.0.1", 0)


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
        ("metrics", "good-guest", 403, "Authorization denied for user guest\n"),
        ("metrics", "good-prometheus", 200, "event_loop_lag_seconds"),
        ("metrics/else", "good-prometheus", 404, ""),
    ],
)
async def test_secure_server_authorizes_requests(path: str, token: str, status: int, text: str) -> None:
    server = secure_metrics_server(Metrics(CollectorRegistry()), address=ANY_PORT, client=Reviews().client())
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with serving(server) as place, get(f"https://{place}/{path}", **headers) as response:
        assert response.status == status
        assert text in await response.text()


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
