"""Peers of the servers: who shares what a server has, and who gives way first.

`connection_limit` counts connections by peer, `webhook.body` counts large bodies; `webhook.api_servers` finds the
API servers' addresses.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from asyncio import BaseTransport
    from collections.abc import Iterable

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Bits of an IPv6 address that name a peer: a host may use any of the other 64.
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class Peer:
    """A client: an IPv4 address, an IPv6 network, or the IPv6 address of an API server."""

    name: str
    #: True for an API server.
    goes_last: bool = False


UNKNOWN = Peer("unknown")


def parse_address(text: str) -> Address | None:
    """Return the address, an IPv4 one also for its form in IPv6; None for a text that is not an address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class Peers:
    """Names the peers of one server."""

    def __init__(self) -> None:
        #: Peers with these addresses give way last.
        self.api_servers: frozenset[Address] = frozenset()

    def find(self, host: str | None) -> Peer:
        """Return the peer with this address."""
        address = parse_address(host or "")
        if address is None:
            return UNKNOWN
        if address in self.api_servers:
            return Peer(str(address), goes_last=True)
        if isinstance(address, ipaddress.IPv6Address):
            return Peer(str(ipaddress.IPv6Network((address, _IPV6_PREFIX), strict=False)))
        return Peer(str(address))

    def of(self, transport: BaseTransport | None) -> Peer:
        """Return the peer of a connection."""
        name = transport.get_extra_info("peername") if transport is not None else None
        return self.find(name[0] if isinstance(name, tuple) else None)


def largest(shares: Iterable[tuple[Peer, int]]) -> frozenset[Peer]:
    """Return the peers with the largest shares, one unless some are equal: API servers only among themselves."""
    sums: Counter[Peer] = Counter()
    for peer, size in shares:
        sums[peer] += size
    sums = Counter({peer: size for peer, size in sums.items() if not peer.goes_last}) or sums
    most = max(sums.values(), default=0)
    return frozenset(peer for peer, size in sums.items() if size == most)
