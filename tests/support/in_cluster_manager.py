"""A manager whose Pod runs on one of the nodes, and is killed in every reboot of it."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.manager_process import ManagerProcess
    from tests.support.upgrade import Stage


class InClusterManager:
    """Use `async with manager.running():`."""

    def __init__(self, stage: Stage, node: str) -> None:
        self._stage = stage
        self._node = node
        self._host = stage.simulation.hosts.of(node)
        self._changed = asyncio.Event()
        #: One for each boot of the node.
        self.lives: list[ManagerProcess] = []
        stage.simulation.hosts.subscribe(self._host_changed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the manager at each boot of its node, until the context ends."""
        task = asyncio.create_task(self._live(), name="in-cluster manager")
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _live(self) -> None:
        while True:
            # The API server may start later than the node.
            life = self._stage.life(seed=f"life {len(self.lives)}")
            self.lives.append(life)
            async with life:
                await self._until(up=False)
                await life.kill()
            await self._until(up=True)

    async def _until(self, *, up: bool) -> None:
        while self._host.up != up:
            self._changed.clear()
            await self._changed.wait()

    def _host_changed(self, node: str) -> None:
        if node != self._node:
            return
        if not self._host.up and self.lives:
            self.lives[-1].wire.cut()
        self._changed.set()
