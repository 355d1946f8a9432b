"""Where the demo shows things: a terminal that is drawn anew, or lines of text one after another."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, Self

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from hack.demo.lines import changes
from hack.demo.terminal import picture

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from hack.demo.view import View


class Screen(Protocol):
    """Takes sentences and views; used as a context, whose end leaves the last view on display."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def say(self, text: str) -> None:
        """Show a remark of the demo's own, which stays."""
        ...

    def show(self, view: View) -> None:
        """Show the upgrade as it stands."""
        ...


class Terminal:
    """One picture at the bottom, redrawn in place; remarks scroll away above it."""

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
        """Print above the picture, never folded, so that commands can be copied."""
        self._console.print(Text(text), soft_wrap=True)

    def show(self, view: View) -> None:
        """Replace the picture."""
        self._live.update(picture(view, spinner=self._spinner))


class Lines:
    """A line, with its time, for everything that became different."""

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
        """Write the remark as it is."""
        self._write(text)

    def show(self, view: View) -> None:
        """Write what is new since the last view."""
        for line in changes(self._last, view):
            self._write(f"{self._now():%H:%M:%S}  {line}")
        self._last = view
