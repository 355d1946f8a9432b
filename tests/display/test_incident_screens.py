"""The screens of incidents on terminals and in a pipe, character by character: what an operator reads and copies."""

from __future__ import annotations

import pytest

from tests.support.managers.incident_screens import assert_screens
from tests.support.managers.incident_table import INCIDENTS
from tests.support.managers.incidents import held_up, taken

#: tests/cli/test_copied_lines.py compares the screens of all incidents before it copies their lines.
FEW = ["unschedulable", "no-pod", "paused", "reboot", "webhook", "failed-os", "failed-disk", "dead-manager"]


@pytest.mark.full
@pytest.mark.rule(
    "blockers: a message has the object, what holds it up, and the cause",
    "status: a failed plan says where it failed, why, and what to do",
    "status: a command stands alone on its line, and is neither cut nor wrapped",
    "status: on a low terminal blockers come before phases that are done",
)
@pytest.mark.parametrize("name", FEW)
async def test_screens_of_an_incident(name: str) -> None:
    async with held_up(INCIDENTS[name]) as run:
        assert_screens(name, await taken(run))
