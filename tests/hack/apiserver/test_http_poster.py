"""Webhooks over real HTTPS."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from hack.apiserver.http_poster import HttpPoster
from hack.apiserver.posting import Target
from hack.cluster.certificates import Authority, server_context
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.real_loop


RELEASED = web.AppKey("released", asyncio.Event)


async def _review(request: web.Request) -> web.Response:
    if request.query.get("slow"):
        await request.app[RELEASED].wait()
    return web.Response(status=200, body=await request.read())


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(now=datetime.now(UTC))


@pytest.fixture
async def url(authority: Authority, tmp_path: Path) -> AsyncIterator[str]:
    application = web.Application()
    application[RELEASED] = asyncio.Event()
    application.router.add_post("/validate", _review)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    tls = server_context(authority.server(), tmp_path)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    application[RELEASED].set()
    await runner.cleanup()


async def test_webhook_is_called_by_url_or_service(authority: Authority, url: str) -> None:
    poster = HttpPoster(services={"here/checker": url})
    trusted = authority.certificate
    by_url = Target(url=f"{url}/validate?timeout=1s", ca_bundle=trusted)
    by_service = Target(service_namespace="here", service_name="checker", service_path="/validate", ca_bundle=trusted)
    for target in (by_url, by_service):
        answer = await poster.post(target, b"{}", timeout=5)
        assert (answer.status, answer.body) == (200, b"{}")


async def test_failed_call_is_transient(authority: Authority, url: str) -> None:
    poster = HttpPoster(services={})
    trusted = authority.certificate
    other = Authority(now=datetime.now(UTC)).certificate
    targets = {
        "not trusted": Target(url=f"{url}/validate", ca_bundle=other),
        "no certificate": Target(url=f"{url}/validate", ca_bundle=b"PEM"),
        "too slow": Target(url=f"{url}/validate?slow=1", ca_bundle=trusted),
        "no such service": Target(service_namespace="here", service_name="missing"),
        "connection refused": Target(url="https://127.0.0.1:1/", ca_bundle=trusted),
    }
    for target in targets.values():
        with pytest.raises(Transient):
            await poster.post(target, b"{}", timeout=0.2)
