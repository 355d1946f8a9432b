"""Workers that take keys from a queue and hand each to a reconcile function (controller-runtime's controller loop)."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

from upgrade_manager.runtime.error_log import EXPECTED, FailureLog
from upgrade_manager.runtime.healthz import Unhealthy
from upgrade_manager.runtime.result import Done, Requeue, RequeueAfter, Result, TerminalError
from upgrade_manager.runtime.workqueue import ShutDown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator
    from random import Random

    from structlog.typing import FilteringBoundLogger

    from upgrade_manager.runtime.workqueue import WorkQueue

__all__ = ["Controller", "ControllerMetrics", "Done", "Label", "Requeue", "RequeueAfter", "Result", "TerminalError"]

K = TypeVar("K", bound="Hashable")

#: Seconds after which a run counts as hung (observability.md, probes).
HUNG_AFTER = 60.0
#: Seconds that runs get to end by themselves when the controller stops.
DRAIN = 0.5


class Label(StrEnum):
    """How a run ended; values of the label `result`."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


class ControllerMetrics(Protocol):
    """Who wants to know; `NoControllerMetrics` when nobody does."""

    def workers(self, limit: int) -> None:
        """The controller has so many workers."""
        ...

    def active(self, change: int) -> None:
        """So many more workers are busy."""
        ...

    def finished(self, result: Label, seconds: float) -> None:
        """A run ended."""
        ...

    def failed(self, *, terminal: bool, bug: bool, timed_out: bool) -> None:
        """A run ended in an error of this nature."""
        ...


class NoControllerMetrics:
    """Keeps nothing."""

    def workers(self, limit: int) -> None:
        """Keep nothing."""

    def active(self, change: int) -> None:
        """Keep nothing."""

    def finished(self, result: Label, seconds: float) -> None:
        """Keep nothing."""

    def failed(self, *, terminal: bool, bug: bool, timed_out: bool) -> None:
        """Keep nothing."""


UNMEASURED = NoControllerMetrics()


class Controller(Generic[K]):
    """Runs `reconcile(key)` for every key of `queue`, in `workers` tasks, until cancelled.

    An exception requeues the key after the rate limiter's wait, except `TerminalError`. `Done`, `RequeueAfter` and
    `TerminalError` reset that wait. `done` is called last, so a requeue arrives while the key is still in processing. A
    reconcile longer than `timeout` seconds, if given, is cancelled and counts as an error; one longer than 60 seconds
    fails `check`.
    """

    def __init__(  # noqa: PLR0913  # a controller is wired once, by name
        self,
        name: str,
        *,
        reconcile: Callable[[K], Awaitable[Result]],
        queue: WorkQueue[K],
        random: Random,
        workers: int = 1,
        metrics: ControllerMetrics = UNMEASURED,
        log: FilteringBoundLogger | None = None,
        timeout: float | None = None,
        drain: float = DRAIN,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._queue = queue
        self._random = random
        self._workers = workers
        self._metrics = metrics
        self._log: FilteringBoundLogger = structlog.get_logger(__name__) if log is None else log
        self._failures: FailureLog[K] = FailureLog(self._log)
        self._timeout = timeout
        self._drain = drain
        metrics.workers(workers)

    async def run(self) -> None:
        """Work until cancelled, or until the queue is shut down and empty.

        When cancelled, the queue gets no new work, and what is in it has `drain` seconds to end; then runs are
        cancelled. Nothing of this controller runs any more when this returns.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._work(), name=f"{self.name}-{n}") for n in range(self._workers)]
            try:
                await asyncio.wait(tasks)
            finally:
                # Leaving the group by the cancellation cancels the workers that are still busy then.
                await self._queue.shut_down_with_drain(self._drain)

    async def check(self) -> None:
        """Liveness: raises Unhealthy while a run hangs."""
        longest = self._queue.statistics().longest_run
        if longest > HUNG_AFTER:
            raise Unhealthy(f"controller {self.name}: a reconcile has been running for {longest:.0f} s")

    async def _work(self) -> None:
        with contextlib.suppress(ShutDown):
            while True:
                key = await self._queue.get()
                try:
                    with self._context(key):
                        await self._handle(key)
                finally:
                    self._queue.done(key)

    @contextlib.contextmanager
    def _context(self, key: K) -> Iterator[None]:
        """Give the run an id in every log line, and drop whatever it binds beside that when it ends."""
        before = structlog.contextvars.get_contextvars()
        reconcile_id = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        structlog.contextvars.bind_contextvars(controller=self.name, key=str(key), reconcile_id=reconcile_id)
        self._metrics.active(1)
        try:
            yield
        finally:
            self._metrics.active(-1)
            structlog.contextvars.clear_contextvars()
            structlog.contextvars.bind_contextvars(**before)

    async def _handle(self, key: K) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = await self._outcome(key)
        self._metrics.finished(result, loop.time() - started)

    async def _outcome(self, key: K) -> Label:
        limit = asyncio.timeout(self._timeout)
        try:
            outcome = await self._within(limit, key)
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            # Something that the run waited for was cancelled, not the run: a failure like any other.
            return self._failed(key, RuntimeError(f"a cancelled wait: {error!r}"), timed_out=False)
        except Exception as error:  # noqa: BLE001  # one bad key must not end the worker
            return self._failed(key, error, timed_out=limit.expired())
        self._failures.succeeded(key)
        return self._succeeded(key, outcome)

    async def _within(self, limit: asyncio.Timeout, key: K) -> Result:
        async with limit:
            outcome = await self._reconcile(key)
        if not isinstance(outcome, Result):
            raise TypeError(f"the reconcile of {self.name} returned {outcome!r}, which is no outcome")
        return outcome

    def _succeeded(self, key: K, outcome: Result) -> Label:
        if isinstance(outcome, Requeue):
            self._queue.add_rate_limited(key)
            return Label.REQUEUE
        self._queue.forget(key)
        if isinstance(outcome, Done):
            return Label.SUCCESS
        self._queue.add_after(key, outcome.seconds)
        return Label.REQUEUE_AFTER

    def _failed(self, key: K, error: Exception, *, timed_out: bool) -> Label:
        terminal = isinstance(error, TerminalError)
        self._metrics.failed(terminal=terminal, bug=not isinstance(error, EXPECTED), timed_out=timed_out)
        self._failures.failed(key, error, failures=self._queue.num_requeues(key) + 1)
        if terminal:
            self._queue.forget(key)
        else:
            self._queue.add_rate_limited(key)
        return Label.ERROR


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
