"""Managers that follow each other: restarted by a test at a chosen write, by a kubelet, or with their node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from tests.support.managers.manager_process import ManagerProcess
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.cli.options import RunOptions
from upgrade_manager.runtime.leader_election import LeaseLost
from upgrade_manager.runtime.manager import NotReady

#: Seconds until a Pod's first restart, doubled up to the last; shorter than a kubelet's to load the server more.
_FIRST, _LAST = 1.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """The interruptions of one manager: numbers of writes, 0 for never."""

    die_at: int = 0
    after: bool = False
    lose_at: int = 0
    #: Virtual seconds without a manager after its death.
    gap: float = 0.0


UNDISTURBED = Interruption()


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """The managers so far."""

    lives: list[ManagerProcess] = field(default_factory=list)
    #: Ends of a Pod's managers but the last.
    ends: list[Exception] = field(default_factory=list)


@asynccontextmanager
async def restarted(stage: UpgradeRun, interruptions: Sequence[Interruption]) -> AsyncIterator[Restarts]:
    """Run a manager for each interruption, one after the other, then an undisturbed one."""
    restarts = Restarts()
    async with in_background(_interrupt(stage, interruptions, restarts)):
        yield restarts


@asynccontextmanager
async def kept_running(stage: UpgradeRun, options: RunOptions) -> AsyncIterator[Restarts]:
    """Run a manager in a Pod: when it ends, it is started again."""
    restarts = Restarts()
    async with in_background(_keep(stage, options, restarts)):
        yield restarts


@asynccontextmanager
async def in_background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run the coroutine, and cancel it at the end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _interrupt(stage: UpgradeRun, interruptions: Sequence[Interruption], restarts: Restarts) -> None:
    for number, each in enumerate((*interruptions, UNDISTURBED)):
        async with stage.life(
            die_at=each.die_at, after=each.after, lose_at=each.lose_at, seed=f"life {number}"
        ) as life:
            restarts.lives.append(life)
            await life.wire.died.wait()
        await asyncio.sleep(each.gap)


async def _keep(stage: UpgradeRun, options: RunOptions, restarts: Restarts) -> None:
    pause = _FIRST
    while True:
        life = replace(stage.life(seed=f"life {len(restarts.ends)}"), options=options)
        try:
            await life.manager.run()
        except (LeaseLost, NotReady) as error:
            restarts.ends.append(error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LAST)


class InClusterManager:
    """A manager whose node reboots; use `async with manager.running():`."""

    def __init__(self, stage: UpgradeRun, node: str) -> None:
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
        async with in_background(self._live()):
            yield

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
