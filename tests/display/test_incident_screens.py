"""The screens of incidents on terminals and in a pipe, character by character: what an operator reads and copies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.support.managers.incident_screens import SIZES, screens
from tests.support.managers.incident_table import INCIDENTS
from tests.support.managers.incidents import Snapshot, held_up, taken
from upgrade_manager.display.remedies import remedy_lines

FOLDER = Path(__file__).parents[1] / "golden/screens"
#: The others run in the full tier.
FEW = {"unschedulable", "no-pod", "paused", "reboot", "webhook", "failed-os", "failed-disk", "dead-manager"}


def rows_of(text: str, width: int) -> int:
    return sum(max(-(-cell_len(line) // width), 1) for line in text.splitlines())


async def snapshot(name: str) -> Snapshot:
    async with held_up(INCIDENTS[name]) as run:
        return await taken(run)


@pytest.mark.rule(
    "status: a command stands alone on its line, and is neither cut nor wrapped",
    "status: on a low terminal blockers come before phases that are done",
)
@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.full) for name in INCIDENTS]
)
async def test_screens_of_an_incident(name: str) -> None:
    """With GOLDEN=write it writes the listings."""
    view = (await snapshot(name)).masked().view
    drawn = dict(screens(view))
    alike = {shown: [size for size, other in drawn.items() if other == shown] for shown in drawn.values()}
    text = "".join(f"== {', '.join(sizes)}\n{shown}" for shown, sizes in alike.items())
    path = FOLDER / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), "if that is meant: GOLDEN=write pytest tests/display/test_incident_screens.py"
    for (width, height), shown in zip(SIZES, drawn.values(), strict=False):
        assert rows_of(shown, width) <= height
    remedies = view.next_steps or [one for row in view.blockers[:1] for one in row.remedies]
    for shown in drawn.values():
        # All of the first blocker's: none is left out by the incidents here.
        assert "\n".join(remedy_lines(remedies)) in shown
        assert not view.cause or view.cause[:20] in shown
    assert all(row.since for row in view.blockers)
    assert all(row.since for row in view.nodes)
