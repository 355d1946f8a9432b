"""Lines that only the terminal wraps: a line that is copied is one command."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.support.managers.displayed import ALLOW, DISALLOW, running_view
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.display.screen import Report, Terminal
from upgrade_manager.display.unbroken import Unbroken, UnbrokenLive

VIEW = running_view()
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: Columns and lines of terminals.
SIZES = [(80, 24), (120, 40), (200, 50), (40, 30)]


def on_terminal(width: int, height: int, *remedies: Remedy) -> str:
    """Return what is written for the last display, without the sequences that control the terminal."""
    (blocker,) = VIEW.blockers
    view = replace(VIEW, blockers=(replace(blocker, remedies=remedies or blocker.remedies),))
    output = io.StringIO()
    with Terminal(Console(file=output, force_terminal=True, width=width, height=height)) as screen:
        screen.show(view)
    return _CONTROL.sub("", output.getvalue().rpartition("UpgradePlan")[2])


def rows_of(text: str, width: int) -> int:
    return sum(max(-(-cell_len(line.rstrip()) // width), 1) for line in text.rstrip("\n").split("\n"))


@pytest.mark.rule("status: a command stands alone on its line, and is neither cut nor wrapped")
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_command_on_a_terminal_is_one_line(width: int, height: int) -> None:
    text = on_terminal(width, height)
    lines = [line.rstrip() for line in text.split("\n")]
    assert ALLOW in lines
    assert f"# undo: {DISALLOW}" in lines
    assert rows_of(text, width) <= height


@pytest.mark.rule("status: a command stands alone on its line, and is neither cut nor wrapped")
@pytest.mark.parametrize("width", [40, 80, 200])
def test_command_in_a_pipe_is_one_line(width: int) -> None:
    output = io.StringIO()
    Report(Console(file=output, width=width)).show(VIEW)
    assert {ALLOW, f"# undo: {DISALLOW}"} <= set(output.getvalue().splitlines())


@pytest.mark.parametrize(("length", "rows"), [(0, 1), (79, 1), (80, 1), (81, 2), (160, 2), (161, 3)])
@pytest.mark.parametrize("letter", ["x", "漢"])
def test_rows_of_a_wrapped_line_are_counted(length: int, rows: int, letter: str) -> None:
    """The display is redrawn in place: a row that is not counted would stay on the terminal."""
    command = letter * (length // cell_len(letter))
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=80, height=60)
    assert len(console.render_lines(Unbroken(command), pad=False)) == rows - (length in {81, 161} and letter != "x")
    with UnbrokenLive(console=console) as live:
        live.update(Unbroken(command))
    assert _CONTROL.sub("", output.getvalue()).strip() == command
