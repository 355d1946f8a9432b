"""`python -m hack.bench.stalls FILE ARGUMENTS…`: the manager, with every long step of its event loop taken down.

The manager's own measure looks twice a second, which is enough to alarm somebody and too seldom to find the longest.
"""

from __future__ import annotations

import json
import selectors
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from upgrade_manager.cli.main import main as manager

if TYPE_CHECKING:
    from selectors import SelectorKey

#: Seconds from which a step is worth a line.
WORTH = 0.01


class WatchedSelector(selectors.DefaultSelector):  # whichever the system has
    """Takes the time between two calls: meanwhile nobody hears what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.perf_counter()
        self._cpu = time.thread_time()
        self._start = self._began
        #: Seconds since the start, of the wall's time and of the processor's.
        self.steps: list[tuple[float, float, float]] = []
        WATCHED.append(self)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait as ever."""
        wall, cpu = time.perf_counter() - self._began, time.thread_time() - self._cpu
        if wall > WORTH:
            self.steps.append((self._began - self._start, wall, cpu))
        found: list[tuple[SelectorKey, int]] = super().select(timeout)
        self._began, self._cpu = time.perf_counter(), time.thread_time()
        return found


#: Those that this process has made.
WATCHED: list[WatchedSelector] = []


def main() -> int:
    """Run the manager; what was taken down is written when it ends of its own accord."""
    report = Path(sys.argv.pop(1))
    # Every event loop asks for the system's best.
    selectors.DefaultSelector = WatchedSelector  # type: ignore[misc]
    status = manager()
    report.write_text(json.dumps([step for selector in WATCHED for step in selector.steps]))
    return status


if __name__ == "__main__":
    sys.exit(main())
