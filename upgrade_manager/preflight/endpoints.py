from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from upgrade_manager.kube.objects import Object

_LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """Where an API server listens."""

    #: An address or a name, in the one spelling that all its spellings have in common.
    host: str
    port: int

    def __str__(self) -> str:
        """As in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoints_of(slices: Iterable[Object]) -> list[Endpoint]:
    """Every endpoint in these EndpointSlices, once, in order.

    Ready or not: one that is not ready now serves its certificate again as soon as it is. Slices of one Service may
    overlap, and those of two address families name the same server twice, by different addresses.
    """
    return sorted({endpoint for piece in slices for endpoint in _endpoints_in(piece)})


def _endpoints_in(piece: Object) -> Iterator[Endpoint]:
    ports = [port for port in map(_port, _objects(piece.get("ports"))) if port]
    for endpoint in _objects(piece.get("endpoints")):
        for address in endpoint.get("addresses") or []:
            for port in ports:
                if isinstance(address, str) and address:
                    yield Endpoint(_normal(address), port)


def _objects(value: Any) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _port(port: Object) -> int:
    """Its number; 0 where it is none that TLS is spoken on."""
    number = port.get("port")
    if (port.get("protocol") or "TCP") != "TCP" or isinstance(number, bool) or not isinstance(number, int):
        return 0
    return number if 0 < number <= _LARGEST_PORT else 0


def _normal(host: str) -> str:
    try:
        return ipaddress.ip_address(host).compressed
    except ValueError:
        return host.lower().removesuffix(".")
