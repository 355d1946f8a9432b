"""The screens of incidents on terminals and in a pipe, character by character: what an operator reads and copies."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.managers.displayed import NOW, event, running_plan
from tests.support.managers.remedy_samples import incidents
from upgrade_manager.display.screen import Report, Terminal
from upgrade_manager.display.view import build

FOLDER = Path(__file__).parents[1] / "golden/screens"
SIZES = [(80, 24), (120, 40), (200, 50)]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_SPINNER = re.compile("[⠁-⣿]")


def screens(name: str) -> Iterator[str]:
    """Yield the screens of the incident."""
    plan, found = running_plan(), [replace(one, since=NOW - timedelta(minutes=12)) for one in incidents()[name]]
    plan["status"]["blockers"] = [one.entry() for one in found]
    plan["status"]["conditions"] = plan["status"]["conditions"][:1]
    plan["status"]["display"] = {"state": f"Stalled: {found[0].reason}"}
    view = build(plan, [event(one.reason, f"{one.message}. {one.remedy}", second=3600) for one in found], now=NOW)
    for width, height in SIZES:
        output = io.StringIO()
        with Terminal(Console(file=output, force_terminal=True, width=width, height=height)) as screen:
            screen.show(view)
        drawn = _CONTROL.sub("", output.getvalue().rpartition("UpgradePlan")[2])
        yield f"== {width}x{height}\nUpgradePlan{_SPINNER.sub('▶', drawn)}"
    output = io.StringIO()
    Report(Console(file=output, width=200)).show(view)
    yield f"== pipe\n{output.getvalue()}"


def listing(name: str) -> str:
    """Return the screens without blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for screen in screens(name) for line in screen.rstrip("\n").split("\n"))


@pytest.mark.rule("status: a command stands alone on its line, and is neither cut nor wrapped")
@pytest.mark.parametrize("name", incidents())
def test_screens_of_an_incident(name: str) -> None:
    """With GOLDEN=write it writes the listings."""
    path, drawn = FOLDER / f"{name}.txt", listing(name)
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn)
    assert drawn == path.read_text()


@pytest.mark.rule("status: on a low terminal blockers come before phases that are done")
@pytest.mark.parametrize("name", incidents())
def test_first_remedies_are_whole_on_each_screen(name: str) -> None:
    first = incidents()[name][0]
    for screen in screens(name):
        lines = [line.rstrip() for line in screen.split("\n")]
        for one in first.remedies:
            assert not one.command or one.command in lines
            assert not one.undo or f"# undo: {one.undo}" in lines
