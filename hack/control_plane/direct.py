"""The way to a control plane's API server without anything in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.kube.config import Connection, Tls
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.observer import RequestObserver

if TYPE_CHECKING:
    from hack.control_plane.control_plane import ControlPlane


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixed:
    """A connection whose credentials never age."""

    server: str
    authorities: str
    authorization: str

    def snapshot(self) -> Connection:
        """The same every time."""
        return Connection(
            server=self.server,
            tls=Tls(authorities=self.authorities),
            source=self,
            authorization=self.authorization,
        )

    async def connect(self) -> Connection:
        """As the protocol says."""
        return self.snapshot()


def direct(plane: ControlPlane, *, token: str = "") -> HttpTransport:
    """A transport, to be entered; without a token, each request's own Authorization header counts."""
    authorization = f"Bearer {token}" if token else ""
    fixed = _Fixed(server=plane.url, authorities=plane.certificate.decode(), authorization=authorization)
    return HttpTransport(fixed.snapshot(), observer=RequestObserver())
