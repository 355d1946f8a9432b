"""Checks the readiness of the webhook by a connection like that of an API server; wiring.py runs the checks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn

from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.errors import Transient
from upgrade_manager.runtime.healthz import Unhealthy

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from upgrade_manager.preflight.certificate_probe import CertificateProbe
    from upgrade_manager.runtime.http_server import HttpServer

#: Seconds between two checks while the webhook is ready, and while it is not.
INTERVAL, RETRY = 5.0, 1.0
_ANY = ("", "0.0.0.0", "::")  # noqa: S104  # compared, not bound


class WebhookReadiness:
    """Checks the certificate's dates after a TLS handshake with the manager's own port, as controller-runtime does.

    The handshake also loads a certificate whose files have changed, which else only requests would load.
    """

    def __init__(
        self, server: HttpServer, *, host: str, certificates: CertificateProbe, now: Callable[[], datetime]
    ) -> None:
        self._server = server
        self._host = "localhost" if host in _ANY else host
        self._certificates = certificates
        self._now = now
        #: The result of the last check.
        self.is_ready = False
        #: The Unix time at which the certificate of the last handshake expires; 0 before the first one.
        self.expires_at = 0.0

    async def check(self) -> None:
        """Readiness: raise Unhealthy unless the webhook is served with a valid certificate."""
        problem = await self._problem()
        self.is_ready = not problem
        if problem:
            raise Unhealthy(f"webhook {problem}")

    async def run(self) -> NoReturn:
        """Check periodically, even if no probe checks readiness."""
        while True:
            try:
                await self.check()
            except Unhealthy:
                await asyncio.sleep(RETRY)
            else:
                await asyncio.sleep(INTERVAL)

    async def _problem(self) -> str:
        if not self._server.port:
            return "is not served yet"
        try:
            shown, *_ = await self._certificates.read(self._host, self._server.port)
        except Transient as error:
            return f"does not respond on port {self._server.port}: {error}"
        self.expires_at = shown.not_after.timestamp()
        if self._now() > shown.not_after:
            return f"has a certificate that expired at {format_time(shown.not_after)}"
        if self._now() < shown.not_before:
            return f"has a certificate that is not valid before {format_time(shown.not_before)}"
        return ""
