"""`python -m hack.bench.loop_steps FILE ARGUMENTS…`: run the manager and record each long step of its event loop.

The manager's own watchdog samples twice a second, too seldom to find the longest step.
"""

from __future__ import annotations

import json
import selectors
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from upgrade_manager.cli.main import main as run_manager

if TYPE_CHECKING:
    from selectors import SelectorKey

#: Seconds of wall time from which a step is recorded.
MIN_STEP = 0.01


class StepSelector(selectors.DefaultSelector):  # the system's best
    """Measures the time between two calls of `select`, in which the loop reads nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.perf_counter()
        self._processor = time.thread_time()
        #: Seconds of wall time and of processor time.
        self.steps: list[tuple[float, float]] = []
        if threading.current_thread() is threading.main_thread():
            # The kubeconfig is loaded by another loop, in a thread.
            SELECTORS.append(self)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Record the step that has ended, and wait."""
        wall, processor = time.perf_counter() - self._began, time.thread_time() - self._processor
        if wall > MIN_STEP:
            self.steps.append((wall, processor))
        found: list[tuple[SelectorKey, int]] = super().select(timeout)
        self._began, self._processor = time.perf_counter(), time.thread_time()
        return found


#: Of the event loops of the main thread.
SELECTORS: list[StepSelector] = []


def main() -> int:
    """Run the manager, and write the report when it ends."""
    report = Path(sys.argv.pop(1))
    # Event loops use the system's best selector.
    selectors.DefaultSelector = StepSelector  # type: ignore[misc]
    status = run_manager()
    report.write_text(json.dumps([step for selector in SELECTORS for step in selector.steps]))
    return status


if __name__ == "__main__":
    sys.exit(main())
