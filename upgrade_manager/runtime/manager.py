"""Starts and stops everything in the right order (controller-runtime's manager).

    start                                       stop
    1. servers: metrics, probes                 1. others and warm-up
    2. webhooks (a list may need conversion)    2. leader-only
    3. caches, waiting until they are synced    3. caches
    4. others                                   4. webhooks
    5. leader election                          5. servers
    6. leader-only: the controllers             6. the lease is released

The lease goes last, and only when all else has ended, so that no two leaders ever act at a time.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.runtime.leader_election import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from structlog.typing import FilteringBoundLogger

    from upgrade_manager.runtime.leader_election import LeaderElector

#: Seconds for an orderly stop, all stages together (controller-runtime's default).
GRACE = 30.0
#: Seconds until something has to be ready, such as a cache to be synced (controller-runtime's default).
READY_WITHIN = 120.0
#: Seconds that cancelled work has to end when the process stops by force; less than a lease outlives its renewal.
LAST_MOMENT = 3.0


class Stage(IntEnum):
    """When something runs, in the order of starting."""

    SERVERS = 1
    WEBHOOKS = 2
    CACHES = 3
    OTHERS = 4
    LEADER = 5


#: The order of stopping.
STOP_ORDER = (Stage.OTHERS, Stage.LEADER, Stage.CACHES, Stage.WEBHOOKS, Stage.SERVERS)


class NotReady(Exception):
    """Something did not get ready in time, so the manager cannot start."""


class GraceExceeded(Exception):
    """Something did not stop in time."""


class Forced(Exception):
    """A second signal ended the orderly stop."""


async def at_once() -> None:
    """The readiness of what is ready when it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """Something that runs until cancelled."""

    name: str
    run: Callable[[], Awaitable[None]]
    #: Returns when the next stage may start.
    ready: Callable[[], Awaitable[None]]
    ready_within: float


@dataclass(slots=True)
class _Group:
    """What runs of one stage."""

    runnables: list[Runnable] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


def kill() -> None:
    """End the process on the spot; what a stop by force does with work that does not let go."""
    os._exit(1)


class Manager:
    """Runs what was added, until told to stop or until something fails.

    The first failure decides what `run` raises. Losing the lease skips the orderly stop: everything is cancelled at
    once. Whatever is cancelled by force and has not ended within `LAST_MOMENT` seconds is ended by `last_resort`,
    because work that goes on without the lease is worse than a process that ends.
    """

    def __init__(
        self,
        *,
        elector: LeaderElector | None,
        grace: float = GRACE,
        last_resort: Callable[[], None] = kill,
    ) -> None:
        self._elector = elector
        self._grace = grace
        self._last_resort = last_resort
        self._log: FilteringBoundLogger = structlog.get_logger(__name__)
        self._groups = {stage: _Group() for stage in Stage}
        #: Renewal and its watch; running from the moment we lead until all else has ended.
        self._election: set[asyncio.Task[None]] = set()
        self._failures: list[Exception] = []
        self._stopping = asyncio.Event()
        self._forced = asyncio.Event()

    def add(
        self,
        stage: Stage,
        name: str,
        run: Callable[[], Awaitable[None]],
        *,
        ready: Callable[[], Awaitable[None]] = at_once,
        ready_within: float = READY_WITHIN,
    ) -> None:
        """Run it in its stage, which is over when `ready()` returned; before `run()` only.

        `run` ends when cancelled, or by itself without failing, which stops nothing else; any exception ends the
        manager.
        """
        runnable = Runnable(name=name, run=run, ready=ready, ready_within=ready_within)
        self._groups[stage].runnables.append(runnable)

    def stop(self) -> None:
        """Stop in order; a second call stops by force."""
        if self._stopping.is_set():
            self._force(Forced("stopped by force, on a second request"))
        self._stopping.set()

    async def run(self) -> None:
        """Start everything, wait, stop everything. Raises the first failure, such as LeaseLost.

        Cancelling it is a request to stop in order; cancelling it again cancels everything at once.
        """
        if not self._stopping.is_set():
            await self._run()
        if self._failures:
            raise self._failures[0]

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            starter = tasks.create_task(self._guard("start", partial(self._start, tasks)), name="manager-start")
            try:
                await self._stopping.wait()
            finally:
                self._stopping.set()
                await self._stop(tasks, starter)

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        for stage in Stage:
            if stage is Stage.LEADER and self._elector is not None:
                await self._elect(self._elector, tasks)
            await self._start_stage(self._groups[stage], tasks)
        self._log.info("manager started")

    async def _start_stage(self, group: _Group, tasks: asyncio.TaskGroup) -> None:
        for runnable in group.runnables:
            group.tasks.add(tasks.create_task(self._guard(runnable.name, runnable.run), name=runnable.name))
        async with asyncio.TaskGroup() as waits:
            for runnable in group.runnables:
                waits.create_task(_wait_ready(runnable))

    async def _elect(self, elector: LeaderElector, tasks: asyncio.TaskGroup) -> None:
        await elector.acquire()
        for name, run in (("lease-renew", elector.renew), ("lease-watch", elector.watch)):
            self._election.add(tasks.create_task(self._guard(name, run), name=name))

    async def _guard(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run it; a failure stops the manager, a lost lease by force."""
        try:
            await run()
        except LeaseLost as error:
            self._force(error)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Not we were cancelled but something that it waited for; ending silently would leave the manager crippled.
            self._fail(name, RuntimeError(f"{name} ended with a wait that was cancelled: {error!r}"))
        except Exception as error:  # noqa: BLE001  # raised again by run(), once everything has stopped
            self._fail(name, _only(error))

    def _fail(self, name: str, error: Exception) -> None:
        self._log.error("manager fails", runnable=name, error=str(error), error_type=type(error).__name__)
        self._failures.append(error)
        self._stopping.set()

    def _force(self, error: Exception) -> None:
        self._log.error("manager stops by force", error=str(error))
        self._failures.append(error)
        self._forced.set()
        self._stopping.set()

    async def _stop(self, tasks: asyncio.TaskGroup, starter: asyncio.Task[None]) -> None:
        """Stop in order within the grace, unless forced; by force then."""
        self._log.info("manager stops")
        orderly = tasks.create_task(self._guard("stop", partial(self._stop_in_order, starter)), name="manager-stop")
        forced = tasks.create_task(self._forced.wait(), name="manager-forced")
        await asyncio.wait({orderly, forced}, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        if orderly.done():
            return
        if not self._forced.is_set():
            names = ", ".join(sorted(task.get_name() for task in self._running())) or "the lease is not released"
            self._failures.append(GraceExceeded(f"not stopped within {self._grace:g} s: {names}"))
        await self._cancel_all({starter, orderly, *self._running()})

    async def _stop_in_order(self, starter: asyncio.Task[None]) -> None:
        await _cancel({starter})
        for stage in STOP_ORDER:
            await _cancel(self._groups[stage].tasks)
        await _cancel(self._election)
        if self._elector is not None:
            await self._elector.release()

    async def _cancel_all(self, tasks: set[asyncio.Task[None]]) -> None:
        timer = asyncio.get_running_loop().call_later(LAST_MOMENT, self._last_resort)
        try:
            await _cancel(tasks)
        finally:
            timer.cancel()

    def _running(self) -> set[asyncio.Task[None]]:
        tasks = self._election.union(*(group.tasks for group in self._groups.values()))
        return {task for task in tasks if not task.done()}


async def _wait_ready(runnable: Runnable) -> None:
    limit = asyncio.timeout(runnable.ready_within)
    try:
        async with limit:
            await runnable.ready()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise NotReady(f"{runnable.name} was not ready within {runnable.ready_within:g} s") from error


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel the tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _only(error: Exception) -> Exception:
    """The one failure inside of groups of one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
