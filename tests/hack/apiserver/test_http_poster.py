"""Webhooks over real HTTPS."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from hack.apiserver.http_poster import HttpPoster
from hack.apiserver.posting import Target
from hack.control_plane.certificates import Authority, server_context
from upgrade_manager.kube.errors import Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.real_loop


async def _review(request: web.Request) -> web.Response:
    return web.Response(status=200, body=await request.read())


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(now=datetime.now(UTC))


@pytest.fixture
async def url(authority: Authority, tmp_path: Path) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_post("/validate", _review)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    tls = server_context(authority.server(("127.0.0.1", "checker.here.svc")), tmp_path)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_webhook_is_called_by_url_or_service(authority: Authority, url: str) -> None:
    poster = HttpPoster(services={"here/checker": url})
    trusted = authority.certificate
    by_url = Target(url=f"{url}/validate", ca_bundle=trusted)
    by_service = Target(service_namespace="here", service_name="checker", service_path="/validate", ca_bundle=trusted)
    for target in (by_url, by_service):
        answer = await poster.post(target, b"{}", timeout=5)
        assert (answer.status, answer.body) == (200, b"{}")


async def test_invalid_bundle_is_transient(url: str) -> None:
    poster = HttpPoster(services={})
    with pytest.raises(Transient):
        await poster.post(Target(url=f"{url}/validate", ca_bundle=b"PEM"), b"{}", timeout=5)
