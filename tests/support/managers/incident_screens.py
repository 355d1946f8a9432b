"""Screens of incidents as text: tests/display compares them, and tests/cli copies the commands from them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from rich.console import Console

from upgrade_manager.display.model import View
from upgrade_manager.display.screen import Report, Terminal

#: Columns and lines.
SIZES = [(80, 24), (120, 40), (200, 50)]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_SPINNER = re.compile("[⠁-⣿]")
_PIPE = 200


def on_terminal(view: View, width: int, height: int) -> str:
    """Return the lines of a terminal, without blanks at their ends."""
    output = io.StringIO()
    with Terminal(Console(file=output, force_terminal=True, width=width, height=height)) as screen:
        screen.show(view)
        # The display is drawn once more when it ends.
        output.seek(0)
        output.truncate()
    return _stripped(_SPINNER.sub("▶", _CONTROL.sub("", output.getvalue())))


def in_pipe(view: View) -> str:
    """Return what is written where the output is not a terminal."""
    output = io.StringIO()
    Report(Console(file=output, width=_PIPE)).show(view)
    return _stripped(output.getvalue())


def _stripped(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").split("\n"))


def screens(view: View) -> Iterator[tuple[str, str]]:
    """Yield name and text of each screen."""
    for width, height in SIZES:
        yield f"{width}x{height}", on_terminal(view, width, height)
    yield "pipe", in_pipe(view)
