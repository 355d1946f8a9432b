"""Quorum of the management nodes: the API server is down while too few of its hosts are up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.actors.hosts import Hosts
    from hack.cluster.backend import Backend


class Quorum:
    """Stops the backend's API server while the management nodes have no quorum, as a rebooting single node."""

    def __init__(self, hosts: Hosts, backend: Backend) -> None:
        self._hosts = hosts
        self._backend = backend
        self._changed = asyncio.Event()
        hosts.subscribe(self._host_changed)

    async def run(self) -> None:
        """Run until cancelled; the API server is up afterwards."""
        is_there = True
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                if is_there != self._hosts.have_quorum:
                    is_there = not is_there
                    await (self._backend.start_api_server() if is_there else self._backend.stop_api_server())
        finally:
            await self._backend.start_api_server()

    def _host_changed(self, _: str) -> None:
        self._changed.set()
