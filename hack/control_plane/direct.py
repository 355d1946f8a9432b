"""A transport to a control plane's API server with nothing in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.kube.config import ClientConfig, TlsConfig
from upgrade_manager.kube.http_transport import HttpTransport

if TYPE_CHECKING:
    from hack.control_plane.control_plane import ControlPlane


@dataclass(frozen=True, slots=True)
class _Static:
    """A source whose credentials never expire."""

    plane: ControlPlane
    authorization: str

    async def load(self) -> ClientConfig:
        """See ConfigSource."""
        return self.snapshot()

    def snapshot(self) -> ClientConfig:
        tls = TlsConfig(ca_data=self.plane.certificate.decode())
        return ClientConfig(server=self.plane.url, tls=tls, source=self, authorization=self.authorization)


def direct(plane: ControlPlane, *, token: str = "") -> HttpTransport:
    """Return a transport to be entered; without a token, each request's own Authorization header counts."""
    source = _Static(plane, f"Bearer {token}" if token else "")
    return HttpTransport(source.snapshot())
