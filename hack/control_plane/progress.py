"""What the provisioning tells its user: a line for each step, and a sign of life in long ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds without a line after which one says that all is well.
_SILENCE = 30.0


class Progress:
    """Plain lines, good for a terminal and for a log, each with the minutes and seconds since the start."""

    def __init__(self, *, write: Callable[[str], None], monotonic: Callable[[], float]) -> None:
        self._write = write
        self._monotonic = monotonic
        self._start = self._spoken = monotonic()
        self._done = 0
        #: Of all steps; set when it is known what is missing.
        self.total = 0
        self._step = ""

    def step(self, text: str) -> None:
        """Begin the next step."""
        self._done += 1
        self._step = text
        self.say(f"{self._done} of {self.total}: {text}")

    def beat(self) -> None:
        """Say after half a minute of silence that the step still goes on."""
        if self._monotonic() - self._spoken >= _SILENCE:
            self.say(f"still at {self._step}")

    def say(self, text: str) -> None:
        """One line."""
        self._spoken = self._monotonic()
        minutes, seconds = divmod(int(self._spoken - self._start), 60)
        self._write(f"[{minutes}:{seconds:02}] {text}")
