"""Starts and stops servers, caches and controllers in order (controller-runtime's manager).

    start                                             stop
    1. servers: metrics, probes                       1. others
    2. webhooks, which listing may need               2. leader: the controllers, then release of the lease
    3. caches; wait until they are synced             3. caches
    4. others                                         4. webhooks
    5. leader election, then leader: the controllers  5. servers

The lease is released when the controllers have stopped, so that two leaders never act at the same time, and a hanging
request to a server does not delay the next leader.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.runtime.concurrency import foreign_cancellation_as_error
from upgrade_manager.runtime.leader_election import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from structlog.typing import FilteringBoundLogger

    from upgrade_manager.runtime.leader_election import LeaderElector

#: Seconds for an orderly stop (controller-runtime's default, as the next one).
GRACEFUL_SHUTDOWN_TIMEOUT = 30.0
#: Seconds for a runnable to become ready, such as a cache to sync.
READY_TIMEOUT = 120.0
#: Seconds for cancelled work to end in a forced stop: less than LEASE_DURATION minus RENEW_DEADLINE.
FORCED_STOP_TIMEOUT = 3.0


class Stage(IntEnum):
    """The order in which runnables start."""

    SERVERS = 1
    WEBHOOKS = 2
    CACHES = 3
    OTHERS = 4
    LEADER = 5


STOP_ORDER = (Stage.OTHERS, Stage.LEADER, Stage.CACHES, Stage.WEBHOOKS, Stage.SERVERS)


class NotReady(Exception):
    """A runnable was not ready within READY_TIMEOUT."""


class ShutdownTimeout(Exception):
    """The manager did not stop within GRACEFUL_SHUTDOWN_TIMEOUT."""


class ForcedStop(Exception):
    """A second signal ended the orderly stop."""


async def always_ready() -> None:
    """Return at once: the runnable is ready when it starts."""


@dataclass(frozen=True, slots=True)
class _Runnable:
    name: str
    run: Callable[[], Awaitable[None]]
    ready: Callable[[], Awaitable[None]]
    #: Seconds; None for no limit.
    ready_timeout: float | None


@dataclass(slots=True)
class _Group:
    """The runnables of one stage."""

    runnables: list[_Runnable] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


def kill() -> None:
    """End the process without cleanup."""
    os._exit(1)


class Manager:
    """Runs all runnables until `stop()` or until one fails.

    Losing the lease skips the orderly stop: everything is cancelled at once. If work has not ended after
    FORCED_STOP_TIMEOUT, `kill` ends the process, because no work may outlast the lease.
    """

    def __init__(self, *, elector: LeaderElector | None, kill: Callable[[], None] = kill) -> None:
        self._elector = elector
        self._kill = kill
        self._log: FilteringBoundLogger = structlog.get_logger(__name__)
        self._groups = {stage: _Group() for stage in Stage}
        #: `renew` and `watch` of the elector while it leads, then `release`.
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
        ready: Callable[[], Awaitable[None]] = always_ready,
        ready_timeout: float | None = READY_TIMEOUT,
    ) -> None:
        """Add a runnable before `run()`. The next stage starts when `ready()` has returned, within the timeout if any.

        `run` may return, which does not affect other runnables; an exception stops the manager.
        """
        self._groups[stage].runnables.append(_Runnable(name, run, ready, ready_timeout))

    def stop(self) -> None:
        """Stop in order; a second call forces the stop."""
        if self._stopping.is_set():
            self._force(ForcedStop("stop forced by a second signal"))
        self._stopping.set()

    async def run(self) -> None:
        """Start everything, wait for the stop, and raise the first failure, such as LeaseLost.

        Cancelling it stops in order; cancelling it again forces the stop.
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
        """Run it; a failure stops the manager, a lost lease stops it immediately."""
        try:
            with foreign_cancellation_as_error(name):
                await run()
        except LeaseLost as error:
            self._force(error)
        except Exception as error:  # noqa: BLE001  # run() raises it after the stop
            self._fail(name, _unwrap(error))

    def _fail(self, name: str, error: Exception) -> None:
        error_type = type(error).__name__
        self._log.error("runnable failed", runnable=name, error=str(error) or error_type, error_type=error_type)
        self._failures.append(error)
        self._stopping.set()

    def _force(self, error: Exception) -> None:
        self._log.error("stopping immediately", error=str(error))
        self._failures.append(error)
        self._forced.set()
        self._stopping.set()

    async def _stop(self, tasks: asyncio.TaskGroup, starter: asyncio.Task[None]) -> None:
        """Stop in order; when forced or after GRACEFUL_SHUTDOWN_TIMEOUT, cancel everything."""
        self._log.info("manager stopping")
        stop_in_order = partial(self._stop_in_order, tasks, starter)
        orderly = tasks.create_task(self._guard("stop", stop_in_order), name="manager-stop")
        forced = tasks.create_task(self._forced.wait(), name="manager-forced")
        await asyncio.wait({orderly, forced}, timeout=GRACEFUL_SHUTDOWN_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        forced.cancel()
        if orderly.done():
            return
        if not self._forced.is_set():
            names = ", ".join(sorted(task.get_name() for task in self._running()))
            self._failures.append(ShutdownTimeout(f"shutdown timed out after {GRACEFUL_SHUTDOWN_TIMEOUT:g} s: {names}"))
        await self._cancel_all({starter, orderly, *self._running()})

    async def _stop_in_order(self, tasks: asyncio.TaskGroup, starter: asyncio.Task[None]) -> None:
        await _cancel({starter})
        for stage in STOP_ORDER:
            await _cancel(self._groups[stage].tasks)
            if stage is Stage.LEADER and self._elector is not None:
                await self._release(self._elector, tasks)

    async def _release(self, elector: LeaderElector, tasks: asyncio.TaskGroup) -> None:
        await _cancel(self._election)
        releasing = tasks.create_task(self._guard("lease-release", elector.release), name="lease-release")
        self._election.add(releasing)
        await asyncio.wait({releasing})

    async def _cancel_all(self, tasks: set[asyncio.Task[None]]) -> None:
        timer = asyncio.get_running_loop().call_later(FORCED_STOP_TIMEOUT, self._kill)
        try:
            await _cancel(tasks)
        finally:
            timer.cancel()

    def _running(self) -> set[asyncio.Task[None]]:
        tasks = self._election.union(*(group.tasks for group in self._groups.values()))
        return {task for task in tasks if not task.done()}


async def _wait_ready(runnable: _Runnable) -> None:
    limit = asyncio.timeout(runnable.ready_timeout)
    try:
        async with limit:
            with foreign_cancellation_as_error(f"readiness of {runnable.name}"):
                await runnable.ready()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise NotReady(f"{runnable.name} not ready within {runnable.ready_timeout:g} s") from error


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel the tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _unwrap(error: Exception) -> Exception:
    """Return the only exception in nested groups of one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
