"""Outputs of an upgrade that goes on: a display that is redrawn on a terminal, lines of text, or documents.

cli/status.py and the demo write to it.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self

from rich.spinner import Spinner
from rich.text import Text

from upgrade_manager.display.keyboard import without_echo
from upgrade_manager.display.lines import changes
from upgrade_manager.display.tables import FORMS, display
from upgrade_manager.display.unbroken import Joined, UnbrokenLive

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from upgrade_manager.display.model import View


#: The line after the end of a notice.
RESTORED = "Connected again"


class Screen(Protocol):
    """Shows sentences and views; the last view stays when its context ends."""

    @property
    def redraws(self) -> bool:
        """True if a view whose durations alone have changed is worth showing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show_message(self, text: str) -> None:
        """Show a message, which stays."""
        ...

    def notify(self, notice: str) -> None:
        """Show why the views may be out of date; "" when they are not any more."""
        ...

    def show(self, view: View) -> None:
        """Show the upgrade's state."""
        ...


class Terminal:
    """A display that is redrawn in place; messages scroll above it."""

    redraws = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._spinner = Spinner("dots", style="cyan")
        self._live = UnbrokenLive(console=console)
        self._notice = ""
        self._end = ExitStack()

    def __enter__(self) -> Self:
        self._end.enter_context(without_echo())
        self._end.enter_context(self._live)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    def show_message(self, text: str) -> None:
        """Print above the display without folding, so that commands can be copied."""
        self._console.print(Text(text), soft_wrap=True)

    def notify(self, notice: str) -> None:
        """Show it with the next views."""
        self._notice = notice

    def show(self, view: View) -> None:
        """Redraw the display, in a shorter form where the terminal has too few lines."""
        draw = partial(display, view, spinner=self._spinner, notice=self._notice)
        for rows in FORMS:
            form = draw(rows=rows)
            if len(self._console.render_lines(form)) <= self._console.height:
                break
        self._live.update(form)


class Lines:
    """A line with the time for each change."""

    redraws = False

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

    def show_message(self, text: str) -> None:
        """Write the message."""
        self._write(text)

    def notify(self, notice: str) -> None:
        """Write it."""
        self._line(notice or RESTORED)

    def show(self, view: View) -> None:
        """Write the changes since the last view."""
        for line in changes(self._last, view):
            self._line(line)
        self._last = view

    def _line(self, text: str) -> None:
        self._write(f"{self._now():%H:%M:%S}  {text}")


class Report(Lines):
    """The tables once, then a line for each change."""

    def __init__(self, console: Console) -> None:
        super().__init__(lambda text: console.print(Text(text), soft_wrap=True))
        self._console = console

    def show(self, view: View) -> None:
        """Print the tables at first."""
        if self._last is None:
            with self._console.capture() as text:
                self._console.print(Joined(display(view)), crop=False)
            # Tables are padded to their width.
            self._console.out(*(line.rstrip() for line in text.get().splitlines()), sep="\n", highlight=False)
            self._last = view
        super().show(view)


class Documents:
    """A document for each change; messages and notices are for people, on another stream."""

    redraws = False

    def __init__(
        self, write: Callable[[str], None], *, form: Callable[[View], str], show_message: Callable[[str], None]
    ) -> None:
        self._write = write
        self._form = form
        self.show_message = show_message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def notify(self, notice: str) -> None:
        """Show it as a message."""
        self.show_message(notice or RESTORED)

    def show(self, view: View) -> None:
        """Write the document."""
        self._write(self._form(view))
