from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from upgrade_manager.kube.errors import Transient
from upgrade_manager.preflight.certificates import Validity
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.http_server import HttpServer
from webhook.readiness import INTERVAL, RETRY, WebhookReadiness

NOW, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
VALID = Validity(not_before=NOW - DAY, not_after=NOW + DAY)


@dataclass(slots=True)
class Server:
    """A server and the certificate that it presents."""

    port: int = 9443
    certificate: Validity | Transient = VALID
    reads: list[tuple[str, int]] = field(default_factory=list)

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        self.reads.append((host, port))
        if isinstance(self.certificate, Transient):
            raise self.certificate
        # That of an intermediate CA may have expired: clients have others.
        return self.certificate, Validity(not_before=NOW - 2 * DAY, not_after=NOW - DAY)


def readiness_of(server: Server, *, host: str = "") -> WebhookReadiness:
    return WebhookReadiness(cast("HttpServer", server), host=host, certificates=server, now=lambda: NOW)


REFUSED = Transient("TLS handshake failed: X")
EXPIRED = Validity(not_before=NOW - 2 * DAY, not_after=NOW - DAY)
FUTURE = Validity(not_before=NOW + DAY, not_after=NOW + 2 * DAY)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (Server(), ""),
        (Server(port=0), "is not served yet"),
        (Server(certificate=REFUSED), "does not respond on port 9443: TLS handshake failed"),
        (Server(certificate=EXPIRED), "has a certificate that expired at 2025-12-31T00:00:00Z"),
        (Server(certificate=FUTURE), "has a certificate that is not valid before 2026-01-02T00:00:00Z"),
    ],
    ids=["valid", "not bound", "no handshake", "expired", "not yet valid"],
)
async def test_certificate_that_is_presented_decides(server: Server, problem: str) -> None:
    readiness = readiness_of(server)
    if problem:
        with pytest.raises(Unhealthy, match=f"webhook {problem}"):
            await readiness.check()
    else:
        await readiness.check()
    presented = server.certificate if server.port else None
    expires_at = presented.not_after.timestamp() if isinstance(presented, Validity) else 0
    assert readiness.expires_at == expires_at
    assert readiness.is_ready is not bool(problem)


@pytest.mark.parametrize(("host", "dialled"), [("", "localhost"), ("::", "localhost"), ("10.0.0.1", "10.0.0.1")])
async def test_address_of_the_server_is_dialled(host: str, dialled: str) -> None:
    server = Server()
    await readiness_of(server, host=host).check()
    assert server.reads == [(dialled, 9443)]


async def test_readiness_is_known_without_a_probe() -> None:
    server = Server(certificate=Transient("refused"))
    readiness = readiness_of(server)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(readiness.run())
        await asyncio.sleep(RETRY / 2)
        assert not readiness.is_ready
        server.certificate = VALID
        await asyncio.sleep(RETRY)
        assert readiness.is_ready
        server.certificate = Transient("refused")
        await asyncio.sleep(INTERVAL)
        assert not readiness.is_ready
        task.cancel()
