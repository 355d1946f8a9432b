from __future__ import annotations

import asyncio
import gzip
import threading
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from tests.support.runtime_reviews import Reviews
from upgrade_manager.runtime.bindaddress import BindAddress
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.metrics_server import metrics_server, plain_metrics_server
from upgrade_manager.runtime.self_signed import make_pem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from prometheus_client import Metric

    from upgrade_manager.runtime.http_server import HttpServer

pytestmark = pytest.mark.real_loop

ANY_PORT = BindAddress("127.0.0.1", 0)


@asynccontextmanager
async def running(server: HttpServer) -> AsyncIterator[str]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.bound()
        yield f"127.0.0.1:{server.port}/metrics"
        task.cancel()


@asynccontextmanager
async def get(url: str, **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
    session = aiohttp.ClientSession(
        auto_decompress=False,
        headers=headers,
        skip_auto_headers=() if "Accept-Encoding" in headers else ("Accept-Encoding",),
    )
    async with session, session.get(url, ssl=False) as answer:
        yield answer


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        ("", "text/plain; version=", False),
        ("*/*", "text/plain; version=", False),
        ("application/openmetrics-text; version=1.0.0,*/*;q=0.1", "application/openmetrics-text; version=1.0.0", True),
    ],
)
async def test_the_scraper_chooses_the_format(accept: str, content_type: str, *, end: bool) -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.reconciles("plans")
    server = plain_metrics_server(metrics, address=ANY_PORT)
    async with running(server) as place, get(f"http://{place}", Accept=accept) as answer:
        text = await answer.text()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith(content_type)
    assert 'controller_runtime_reconcile_total{controller="plans",result="success"} 0.0' in text
    assert text.endswith("# EOF\n") is end


async def test_answers_are_compressed_for_those_who_like_it() -> None:
    metrics = Metrics(CollectorRegistry())
    server = plain_metrics_server(metrics, address=ANY_PORT)
    async with running(server) as place, get(f"http://{place}", **{"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert b"event_loop_lag_seconds" in gzip.decompress(await answer.read())


async def test_computed_gauges_are_refreshed_before_each_scrape() -> None:
    metrics = Metrics(CollectorRegistry())
    scrapes = Counter("scrapes", "Scrapes.", registry=metrics.registry)
    metrics.on_scrape(scrapes.inc)
    async with running(plain_metrics_server(metrics, address=ANY_PORT)) as place:
        for count in (1, 2):
            async with get(f"http://{place}") as answer:
                assert f"scrapes_total {count}.0" in await answer.text()


@pytest.mark.parametrize(
    ("headers", "status", "text"),
    [
        ({}, 401, "Unauthorized\n"),
        ({"Authorization": "Bearer stolen"}, 401, "Unauthorized\n"),
        ({"Authorization": "Bearer good-nobody"}, 403, "Authorization denied for user nobody\n"),
        ({"Authorization": "Bearer good-prometheus"}, 200, "event_loop_lag_seconds"),
    ],
)
@pytest.mark.parametrize("given", [False, True], ids=["self-signed", "given certificate"])
async def test_the_secure_server_asks_who_it_is(
    tmp_path: Path, headers: dict[str, str], status: int, text: str, *, given: bool
) -> None:
    if given:
        pem = make_pem(now=datetime.now(tz=UTC))
        (tmp_path / "tls.key").write_bytes(pem)
        (tmp_path / "tls.crt").write_bytes(pem)
    server = metrics_server(
        Metrics(CollectorRegistry()),
        address=ANY_PORT,
        client=Reviews().client(),
        certificates=tmp_path if given else None,
    )
    async with running(server) as place, get(f"https://{place}", **headers) as answer:
        assert answer.status == status
        assert text in await answer.text()


async def test_other_paths_are_not_there_not_even_for_those_who_may_read() -> None:
    server = metrics_server(Metrics(CollectorRegistry()), address=ANY_PORT, client=Reviews().client())
    token = {"Authorization": "Bearer good-prometheus"}
    async with running(server) as place, get(f"https://{place}/else", **token) as answer:
        assert answer.status == 404


async def test_series_become_text_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics(CollectorRegistry())
    rendering: list[int] = []

    def collect() -> list[Metric]:
        rendering.append(threading.get_ident())
        return []

    monkeypatch.setattr(metrics.registry, "collect", collect)
    async with running(plain_metrics_server(metrics, address=ANY_PORT)) as place, get(f"http://{place}") as answer:
        assert answer.status == 200
    assert len(rendering) == 1
    assert threading.get_ident() not in rendering
