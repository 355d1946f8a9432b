"""Reads the API servers' addresses, so that reviews from API servers give way last.

`wiring` runs it beside the webhook; `upgrade_manager.runtime.peers` uses the addresses.
"""

from __future__ import annotations

import asyncio
import ipaddress
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, NoReturn

import structlog

from upgrade_manager.api.keys import LABEL_CONTROL_PLANE
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.pager import ListOptions, Selection
from upgrade_manager.kube.resources import ENDPOINT_SLICES, NODES
from upgrade_manager.runtime.peers import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.runtime.peers import Address, Peers

#: Seconds between two reads, and between two attempts while reading fails.
INTERVAL, RETRY = 60.0, 5.0
#: Seconds for one read.
READ_TIMEOUT = 10.0
#: The number of a node's own addresses in its range of Pod addresses, which an overlay network uses for its tunnel.
_TUNNEL_ADDRESSES = 2
log = structlog.get_logger(__name__)


class ApiServers:
    """Keeps the API servers' addresses of `peers` up to date; without these addresses no peer goes last."""

    def __init__(self, client: Client, peers: Peers) -> None:
        self._client = client
        self._peers = peers
        #: The last result of each selection.
        self._found: dict[Selection, frozenset[Address]] = {}
        self._is_failing = False

    async def run(self) -> NoReturn:
        """Read again and again until cancelled."""
        while True:
            error = await self.refresh()
            if error and not self._is_failing:
                log.warning("addresses of the API servers not read", error=error)
            self._is_failing = bool(error)
            await asyncio.sleep(RETRY if error else INTERVAL)

    async def refresh(self) -> str:
        """Read all selections; keep the last result of an unreadable selection, and return the errors, if any."""
        errors = []
        for selection, addresses in _SOURCES.items():
            try:
                async with asyncio.timeout(READ_TIMEOUT):
                    page = await self._client.list_page(selection, ListOptions(resource_version="0", limit=0))
            except KubeError as error:
                errors.append(str(error))
            except TimeoutError:
                errors.append(f"{selection.resource.name}: timed out after {READ_TIMEOUT:g} s")
            else:
                self._found[selection] = frozenset(address for obj in page.items for address in addresses(obj))
                self._peers.api_servers = frozenset(chain.from_iterable(self._found.values()))
        return "; ".join(errors)


def _endpoints(endpoint_slice: Object) -> Iterator[Address]:
    for endpoint in objects.items(endpoint_slice, "endpoints"):
        yield from _parsed(objects.items(endpoint, "addresses"))


def _node_addresses(node: Object) -> Iterator[Address]:
    """Yield the addresses that a control-plane node's API server connects from."""
    addresses = objects.items(node, "status", "addresses")
    yield from _parsed([objects.text(one, "address") for one in addresses if objects.text(one, "type") == "InternalIP"])
    for cidr in objects.items(node, "spec", "podCIDRs") or [objects.text(node, "spec", "podCIDR")]:
        with suppress(ValueError):
            yield from islice(ipaddress.ip_network(str(cidr)), _TUNNEL_ADDRESSES)


def _parsed(texts: list[object]) -> Iterator[Address]:
    for text in texts:
        address = parse_address(text) if isinstance(text, str) else None
        if address is not None:
            yield address


#: The addresses in each object, by selection. The manager's role allows only this EndpointSlice.
_SOURCES: dict[Selection, Callable[[Object], Iterator[Address]]] = {
    Selection(resource=ENDPOINT_SLICES, namespace="default", field_selector="metadata.name=kubernetes"): _endpoints,
    Selection(resource=NODES, label_selector=LABEL_CONTROL_PLANE): _node_addresses,
}
