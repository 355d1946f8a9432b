"""Waits by kind: each kind has one class, and finders that take it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from upgrade_manager.blockers import known_wait
from upgrade_manager.blockers import wait as waits
from upgrade_manager.blockers.deadlines import seconds_left
from upgrade_manager.blockers.table import FINDERS
from upgrade_manager.blockers.wait import (
    DrainWait,
    EvacuationWait,
    ImageWait,
    JobWait,
    PlanWait,
    RebootWait,
    Wait,
    WaitKind,
)

BEGAN, LATER = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 2))
row = pytest.param


#: The classes of which waits are made: those with a kind.
CLASSES = [
    one
    for one in {**vars(waits), **vars(known_wait)}.values()
    if isinstance(one, type) and issubclass(one, Wait) and hasattr(one, "kind")
]


def made(kind: type[Wait]) -> Wait:
    """Return a wait of the class, with all that it may require."""
    fields: dict[str, Any] = {"pods": "", "deployment": "", "remedies": (), "release_os": "", "name": "n", "vms": ()}
    names = kind.__dataclass_fields__.keys()
    given = {name: fields.get(name, BEGAN) for name in names & {*fields, "imported", "stepped", "undisturbed"}}
    given |= dict.fromkeys(names & {"released", "ready_changed", "since"}, BEGAN)
    return kind(**given)


def test_each_kind_has_one_class() -> None:
    assert Counter(one.kind for one in CLASSES) == Counter(WaitKind)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_class_has_finders(kind: type[Wait]) -> None:
    wait = made(kind)
    assert [row for row in FINDERS if seconds_left(row, wait, now=wait.since) is not None] != []


@pytest.mark.parametrize(
    ("wait", "progressed", "usual"),
    [
        row(PlanWait(name="p", since=BEGAN), BEGAN, 60, id="one whose progress cannot be seen"),
        row(ImageWait(name="i", since=BEGAN, imported=LATER), LATER, 60, id="import"),
        row(JobWait(name="j", since=BEGAN, stepped=LATER, expected=9, pods=""), LATER, 9, id="Job"),
        row(DrainWait(name="s", since=BEGAN, undisturbed=LATER), LATER, 60, id="drain"),
        row(EvacuationWait(name="n", since=BEGAN, released=LATER), LATER, 60, id="evacuation"),
        row(RebootWait(name="n", since=BEGAN, release_os="new", ready_changed=LATER), LATER, 60, id="reboot"),
    ],
)
def test_progress_of_a_wait(wait: Wait, progressed: datetime, usual: float) -> None:
    assert (wait.progressed, wait.usual) == (progressed, usual)
