"""Endpoints of the API servers, read from EndpointSlices.

check.py and kubelets.py read them.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from upgrade_manager.kube.objects import Object

_MAX_PORT = 65535


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An address on which an API server listens."""

    #: IP address or name, normalized.
    host: str
    port: int

    def __str__(self) -> str:
        """`10.0.0.1:6443`, `[fd00::1]:6443`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoints_of(slices: Iterable[Object]) -> list[Endpoint]:
    """Return every endpoint of the EndpointSlices once, sorted.

    Endpoints that are not ready are included, because they will serve the same certificate. The slices of one Service
    may overlap.
    """
    return sorted({endpoint for piece in slices for endpoint in _endpoints_in(piece)})


def _endpoints_in(piece: Object) -> Iterator[Endpoint]:
    ports = [port for port in map(_port, _objects(piece.get("ports"))) if port]
    for endpoint in _objects(piece.get("endpoints")):
        for address in endpoint.get("addresses") or []:
            for port in ports:
                if isinstance(address, str) and address:
                    yield Endpoint(_normalized(address), port)


def _objects(value: Any) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _port(port: Object) -> int:
    """Return the number of a TCP port; 0 for anything else."""
    number = port.get("port")
    if (port.get("protocol") or "TCP") != "TCP" or isinstance(number, bool) or not isinstance(number, int):
        return 0
    return number if 0 < number <= _MAX_PORT else 0


def _normalized(host: str) -> str:
    try:
        return ipaddress.ip_address(host).compressed
    except ValueError:
        return host.lower().removesuffix(".")
