"""The certificates that the simulated API servers present."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from hack.scenario import ApiServer
from upgrade_manager.kube.errors import REFUSED, TIMED_OUT, Transient
from upgrade_manager.preflight.certificates import Validity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from hack.scenario import Scenario

#: Seconds of a handshake, and of one that times out, before scaling.
_HANDSHAKE, _SILENCE = 0.004, 10.0


class ApiCertificates:
    """A `CertificateProbe` for managers in the test's process, after the scenario's `api_servers`.

    `host` and `port` are those of the API server that clients use; the others listen on the same port.
    """

    def __init__(
        self, scenario: Scenario, *, host: str, port: int, now: Callable[[], datetime], scale: float = 1.0
    ) -> None:
        self._servers = {host: ApiServer()} | scenario.api_servers
        self._port = port
        self._now = now
        self._scale = scale
        #: The times of the handshakes with each server, in order.
        self.asked: dict[str, list[datetime]] = {}

    async def read(self, host: str, port: int) -> Sequence[Validity]:
        """Read the validity of the server's and the CA's certificate. Raises Transient for an unreachable server."""
        asked = self.asked.setdefault(host, [])
        asked.append(self._now())
        server = self._servers.get(host)
        if server is None or port != self._port:
            raise Transient("connection failed: Connection refused", reason=REFUSED)
        if not server.answers or asked[-1] - asked[0] < timedelta(seconds=server.unreachable * self._scale):
            await asyncio.sleep(_SILENCE * self._scale)
            raise Transient(f"TLS handshake timed out after {_SILENCE:g} s", reason=TIMED_OUT)
        if not server.tls:
            raise Transient("TLS handshake failed: WRONG_VERSION_NUMBER")
        await asyncio.sleep(_HANDSHAKE * self._scale)
        return [self._valid(server.since_days, server.days), self._valid(server.since_days, server.authority_days)]

    def _valid(self, since: float, days: float) -> Validity:
        """Return a validity around the first handshake, in whole seconds as in certificates."""
        first = min(times[0] for times in self.asked.values()).replace(microsecond=0)
        return Validity(not_before=first - timedelta(days=since), not_after=first + timedelta(days=days))
