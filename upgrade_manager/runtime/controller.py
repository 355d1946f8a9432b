"""Takes keys from a work queue and reconciles them (controller-runtime's controller)."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.runtime.concurrency import foreign_cancellation_as_error
from upgrade_manager.runtime.error_log import EXPECTED, ErrorLog
from upgrade_manager.runtime.healthz import HANG_TIMEOUT, Unhealthy
from upgrade_manager.runtime.result import Done, ReconcileTimeout, Requeue, Result, TerminalError
from upgrade_manager.runtime.workqueue import ShutDown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from random import Random

    from upgrade_manager.runtime.metrics import Metrics
    from upgrade_manager.runtime.workqueue import WorkQueue

#: Seconds for running and queued reconciles to end when the controller stops.
DRAIN_TIMEOUT = 0.5
#: Seconds after which all keys are reconciled, whether or not something has changed.
RESYNC_PERIOD = 600.0


class Controller:
    """Runs `reconcile(key)` for the keys of `queue`, one at a time, and for all `keys()` every RESYNC_PERIOD.

    An exception requeues the key after the rate limiter's delay, except `TerminalError`. `Done`, `RequeueAfter` and
    `TerminalError` reset that delay. The time limit of a reconcile is the reconciler's.
    """

    def __init__(
        self,
        name: str,
        *,
        reconcile: Callable[[str], Awaitable[Result]],
        keys: Callable[[], Iterable[str]],
        is_leader: Callable[[], bool],
        queue: WorkQueue,
        random: Random,
        metrics: Metrics,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._keys = keys
        self._is_leader = is_leader
        self._queue = queue
        self._random = random
        self._metrics = metrics.controller(name)
        self._reconciles = metrics.reconciles(name)
        self._errors = ErrorLog(structlog.get_logger(__name__))
        self._metrics.max_concurrent_reconciles.set(1)

    async def run(self) -> None:
        """Reconcile until cancelled or until the queue is shut down and empty.

        On cancellation, keys in the queue have `DRAIN_TIMEOUT` seconds to be reconciled; none without the lease.
        """
        async with asyncio.TaskGroup() as group:
            worker = group.create_task(self._work(), name=self.name)
            resync = group.create_task(self._resync(), name=f"{self.name}-resync")
            try:
                await asyncio.wait({worker})
            finally:
                resync.cancel()
                if self._is_leader():
                    await self._queue.shut_down_with_drain(DRAIN_TIMEOUT)
                self._queue.shut_down()

    async def check(self) -> None:
        """Liveness: raise Unhealthy while a reconcile hangs."""
        seconds = self._queue.longest_run()
        if seconds > HANG_TIMEOUT:
            raise Unhealthy(f"controller {self.name}: a reconcile has been running for {seconds:.0f} s")

    async def _resync(self) -> None:
        """Add all keys periodically, so that a lost event delays a key only for so long."""
        while True:
            await asyncio.sleep(RESYNC_PERIOD)
            for key in self._keys():
                self._queue.add(key)

    async def _work(self) -> None:
        with contextlib.suppress(ShutDown):
            while True:
                key = await self._queue.get()
                try:
                    with self._log_context(key):
                        await self._handle(key)
                finally:
                    # Last, so that a requeue arrives while the key is still being processed.
                    self._queue.done(key)

    @contextlib.contextmanager
    def _log_context(self, key: str) -> Iterator[None]:
        """Bind a reconcile id to all log lines, and restore the log context afterwards."""
        before = structlog.contextvars.get_contextvars()
        reconcile_id = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        structlog.contextvars.bind_contextvars(controller=self.name, key=key, reconcile_id=reconcile_id)
        try:
            yield
        finally:
            structlog.contextvars.clear_contextvars()
            structlog.contextvars.bind_contextvars(**before)

    async def _handle(self, key: str) -> None:
        started = loop_time()
        with self._metrics.active_workers.track_inprogress():
            result = await self._run_reconcile(key)
        self._reconciles[result].inc()
        self._metrics.time.observe(loop_time() - started)

    async def _run_reconcile(self, key: str) -> str:
        """Reconcile the key, requeue it according to the result, and return the value of the label `result`."""
        try:
            with foreign_cancellation_as_error("reconcile"):
                result = await self._reconcile(key)
        except Exception as error:  # noqa: BLE001  # one bad key must not end the worker
            return self._failed(key, error)
        return self._succeeded(key, result)

    def _succeeded(self, key: str, result: Result) -> str:
        if isinstance(result, Requeue):
            self._queue.add_rate_limited(key)
            return "requeue"
        self._queue.forget(key)
        if isinstance(result, Done):
            if result.is_deleted:
                self._errors.deleted(key)
            else:
                self._errors.succeeded(key)
            return "success"
        if result.is_reconciled:
            self._errors.succeeded(key)
        self._queue.add_after(key, result.seconds)
        return "requeue_after"

    def _failed(self, key: str, error: Exception) -> str:
        is_terminal = isinstance(error, TerminalError)
        self._metrics.errors.inc()
        self._metrics.terminal_errors.inc(is_terminal)
        self._metrics.panics.inc(not isinstance(error, EXPECTED))
        self._metrics.timeouts.inc(isinstance(error, ReconcileTimeout))
        self._errors.failed(key, error, failures=self._queue.num_requeues(key) + 1)
        if is_terminal:
            self._queue.forget(key)
        else:
            self._queue.add_rate_limited(key)
        return "error"
