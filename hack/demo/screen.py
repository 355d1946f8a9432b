"""The demo's output: a display that is redrawn on a terminal, or lines of text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, Self

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from hack.demo.lines import changes
from hack.demo.terminal import display

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from hack.demo.view import View


class Screen(Protocol):
    """Shows sentences and views; the last view stays when its context ends."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def say(self, text: str) -> None:
        """Show a message, which stays."""
        ...

    def show(self, view: View) -> None:
        """Show the upgrade's state."""
        ...


class Terminal:
    """A display that is redrawn in place; messages scroll above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(console=console, refresh_per_second=8, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Print above the display without folding, so that commands can be copied."""
        self._console.print(Text(text), soft_wrap=True)

    def show(self, view: View) -> None:
        """Redraw the display."""
        self._live.update(display(view, spinner=self._spinner))


class Lines:
    """A line with the time for each change."""

    def __init__(
        self, write: Callable[[str], None], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._write = write
        self._now = now
        self._last: View | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        """Write the message."""
        self._write(text)

    def show(self, view: View) -> None:
        """Write the changes since the last view."""
        for line in changes(self._last, view):
            self._write(f"{self._now():%H:%M:%S}  {line}")
        self._last = view
