"""The API server runs on the very machines that are rebooted: with too few of them up it is away, for everybody."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.actors.hosts import Hosts
    from hack.cluster.backend import Backend


class Quorum:
    """Takes the backend's API server away while the management nodes have no quorum, as one alone in its reboot."""

    def __init__(self, hosts: Hosts, backend: Backend) -> None:
        self._hosts = hosts
        self._backend = backend
        self._changed = asyncio.Event()
        hosts.subscribe(self._host_changed)

    async def run(self) -> None:
        """Watch over it until cancelled; then it is there again."""
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
