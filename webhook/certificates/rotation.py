"""Keeps the self-made certificate valid, stored, trusted and served.

wiring.py runs it; secret.py and ca_bundle.py are its writes.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.keys import MANAGER
from upgrade_manager.kube.retry import Backoff
from upgrade_manager.runtime.error_log import ErrorLog
from upgrade_manager.runtime.healthz import Unhealthy
from webhook.certificates.ca_bundle import CaBundle
from webhook.certificates.secret import CertificateSecret

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime
    from random import Random

    from upgrade_manager.kube.client import Client
    from webhook.certificates.pair import Pair, Service

#: The Service, in the manager's namespace.
SERVICE = f"{MANAGER}-webhook"
SECRET = f"{SERVICE}-certs"
#: The webhook configurations (ca_bundle.py).
CONFIGURATION = MANAGER
#: Seconds between two checks.
INTERVAL = 60.0
#: Seconds in which every API server learns a new caBundle.
PROPAGATION = 5.0
#: Seconds for one check.
TIMEOUT = 120.0


class CertificateRotation:
    """Runs in every replica, leader or not; an error is retried and never ends it.

    The served certificate is replaced without a broken connection: each handshake chooses the newest.
    """

    def __init__(
        self,
        client: Client,
        *,
        service: Service,
        issue: Callable[[Service, datetime], Awaitable[Pair]],
        now: Callable[[], datetime],
        random: Random,
    ) -> None:
        self._service = service
        self._issue = issue
        self._now = now
        self._random = random
        self._secret = CertificateSecret(client, name=SECRET, service=service)
        self._bundle = CaBundle(client, name=CONFIGURATION)
        self._errors = ErrorLog(structlog.get_logger(__name__, certificate=SECRET))
        self._error = "not made yet"
        self._served: Pair | None = None
        self._context: ssl.SSLContext | None = None

    async def context(self) -> ssl.SSLContext:
        """Return the context of the server, which may start before there is a certificate."""
        front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        front.minimum_version = ssl.TLSVersion.TLSv1_2
        front.sni_callback = self._choose
        return front

    async def check(self) -> None:
        """Readiness: raise Unhealthy unless a valid certificate is served."""
        if self._served is None or not self._served.is_valid(self._now()):
            raise Unhealthy(f"webhook has no valid certificate: {self._error}")

    async def run(self) -> None:
        """Check the certificate every INTERVAL, until cancelled."""
        backoff, failures = Backoff(random=self._random), 0
        while True:
            try:
                async with asyncio.timeout(TIMEOUT):
                    await self.rotate()
            except Exception as error:  # noqa: BLE001  # the manager must not end for its webhook
                failures += 1
                self._error = str(error) or type(error).__name__
                self._errors.failed(CONFIGURATION, error, failures=failures)
                await asyncio.sleep(backoff.failed())
            else:
                failures = 0
                self._errors.succeeded(CONFIGURATION)
                await asyncio.sleep(INTERVAL)
                backoff.succeeded(INTERVAL)

    async def rotate(self) -> None:
        """Check once. Raises KubeError and CertificateError."""
        pair = await self._agreed()
        published = await self._bundle.publish([one.authority for one in (pair, self._served) if one is not None])
        if pair == self._served:
            return
        if published:
            await asyncio.sleep(PROPAGATION)
        self._context = pair.context()
        self._served = pair

    async def _agreed(self) -> Pair:
        """Return the pair in the Secret, which is made or replaced if necessary. Raises CertificateError."""
        while True:
            stored = await self._secret.read()
            if stored is not None and not stored.is_due(self._now()):
                return stored
            pair = await self._successor(stored)
            if await self._secret.write(pair):
                return pair

    async def _successor(self, stored: Pair | None) -> Pair:
        """Return a pair to store, whose CA the API server trusts."""
        served = self._served
        if served is not None and not served.is_due(self._now()):
            return served
        pair = await self._issue(self._service, self._now())
        in_use = [one.authority for one in (stored, served) if one is not None]
        if await self._bundle.publish([pair.authority, *in_use]):
            await asyncio.sleep(PROPAGATION)
        return pair

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _front: ssl.SSLContext) -> int | None:
        if self._context is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._context
        return None
