"""Screens of incidents as text: tests/display and tests/cli compare them, and tests/cli copies their commands."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console

from tests.support.managers.incidents import Snapshot
from upgrade_manager.display.model import View
from upgrade_manager.display.remedies import remedy_lines
from upgrade_manager.display.screen import Report, Terminal

FOLDER = Path(__file__).parents[2] / "golden/screens"

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


def assert_screens(name: str, snapshot: Snapshot) -> None:
    """Compare the screens of an incident with its listing, which GOLDEN=write writes, and check what each one shows."""
    view = snapshot.masked().view
    drawn = dict(screens(view))
    alike = {shown: [size for size, other in drawn.items() if other == shown] for shown in drawn.values()}
    text = "".join(f"== {', '.join(sizes)}\n{shown}" for shown, sizes in alike.items())
    path = FOLDER / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), "if that is meant: GOLDEN=write pytest tests/cli/test_copied_lines.py"
    for (width, height), shown in zip(SIZES, drawn.values(), strict=False):
        assert _rows_of(shown, width) <= height
    remedies = view.next_steps or [one for row in view.blockers[:1] for one in row.remedies]
    for shown in drawn.values():
        # All of the first blocker's: none is left out by the incidents here.
        assert "\n".join(remedy_lines(remedies)) in shown
        assert not view.cause or view.cause[:20] in shown
    assert all(row.since for row in view.blockers)
    assert all(row.since for row in view.nodes)


def _rows_of(text: str, width: int) -> int:
    return sum(max(-(-cell_len(line) // width), 1) for line in text.splitlines())
