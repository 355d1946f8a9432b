"""An event loop in virtual time: time jumps to the next timer when no callback is ready.

Hours of an upgrade take a fraction of a second, and the order of events depends on code and seeds only.
"""

from __future__ import annotations

import asyncio
import selectors
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

#: The wall time at loop time 0.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
#: Real seconds that a loop without timers waits for a thread or a file before it raises StuckError.
STUCK_AFTER = 5.0
#: True in a task whose threads' work the loop does itself, at once: when a thread ends depends on other programs.
runs_inline: ContextVar[bool] = ContextVar("runs_inline", default=False)


class StuckError(RuntimeError):
    """All tasks wait, and no timer, thread or file can wake them."""


class VirtualEventLoop(asyncio.SelectorEventLoop):
    """A loop whose `time()` starts at 0 and advances only when no callback is ready."""

    def __init__(self) -> None:
        self._virtual_time = 0.0
        #: The number of running executor calls; time does not jump during them.
        self.running_threads = 0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Return the virtual seconds since the loop's creation."""
        return self._virtual_time

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Run a function in a thread, while time stands still, or at once if `runs_inline`."""
        if runs_inline.get():
            return self._run_inline(func, *args)
        future = super().run_in_executor(executor, func, *args)
        self.running_threads += 1
        future.add_done_callback(self._thread_done)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109
        """Wait for the threads without the timeout of Python 3.12 and later, which is virtual here."""
        await super().shutdown_default_executor()

    def _run_inline(self, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # the caller's
            done.set_exception(error)
        return done

    def _thread_done(self, _future: asyncio.Future[Any]) -> None:
        self.running_threads -= 1

    def jump(self, seconds: float) -> None:
        """Advance the time; the selector calls it instead of blocking."""
        self._virtual_time += seconds


class _JumpingSelector(selectors.DefaultSelector):
    """Polls real files without waiting, and turns a wait for a timer into a jump."""

    def __init__(self, loop: VirtualEventLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self._loop.running_threads:
            return self._await_thread()
        self._loop.jump(timeout)
        return ready

    def _await_thread(self) -> Any:
        ready = super().select(STUCK_AFTER)
        if not ready and not self._loop.running_threads:
            waiting = sorted(task.get_name() for task in asyncio.all_tasks(self._loop))
            raise StuckError(f"nothing is scheduled and nothing will ever be: {', '.join(waiting)}")
        return ready


def virtual_now() -> datetime:
    """Return the loop's time as a datetime."""
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new virtual loop."""
    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        return runner.run(main)
