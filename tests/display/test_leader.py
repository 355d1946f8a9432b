"""The leader in views: from a reading of the Lease to what an operator sees first."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from tests.support.managers.displayed import NOW, plan, running_plan, running_view
from upgrade_manager.display.document import document
from upgrade_manager.display.leader import COMMANDS, LeaderState, LeaseReading, leader_row
from upgrade_manager.display.lines import changes
from upgrade_manager.display.model import View
from upgrade_manager.display.tables import FORMS, display
from upgrade_manager.display.unbroken import Joined
from upgrade_manager.display.view import build
from upgrade_manager.runtime.lease import new_lease, released_lease

POD = "harvester-upgrade-manager-7c9f-x"
LEASE = "lease harvester-system/upgrade-manager.management.harvesterhci.io"
STANDS = "No manager leads, so the upgrade stands still: "
LATE = f"{STANDS}{POD} last renewed its lease 9 min 12 s ago."


def lease(seconds: float, *, identity: str = f"{POD}_0a1b") -> dict[str, Any]:
    """Return a Lease that was renewed so long ago."""
    return new_lease("x", namespace="harvester-system", identity=identity, now=NOW - timedelta(seconds=seconds))


def reading(obj: dict[str, Any], *, error: str = "", at: datetime = NOW) -> LeaseReading:
    return LeaseReading(lease=obj, error=error, at=at)


LED, EXPIRED = reading(lease(2)), reading(lease(552))
RELEASED = reading(released_lease(lease(60), now=NOW - timedelta(seconds=40)))
ABSENT = reading({}, error=f"{LEASE} does not exist")


@pytest.mark.rule("status: a plan without a leader is said first, and a plan that has ended needs none")
@pytest.mark.parametrize(
    ("found", "state", "message"),
    [
        pytest.param(LED, "Leading", "", id="renewed"),
        pytest.param(reading(lease(30)), "Leading", "", id="may be taken over"),
        pytest.param(reading(lease(31)), "None", f"{STANDS}{POD} last renewed its lease 31 s ago.", id="late"),
        pytest.param(EXPIRED, "None", LATE, id="expired"),
        pytest.param(reading(lease(552), at=NOW - timedelta(seconds=550)), "Leading", "", id="read before"),
        pytest.param(RELEASED, "None", f"{STANDS}the last leader released its lease 40 s ago.", id="released"),
        pytest.param(reading({"spec": {}}), "None", f"{STANDS}the last leader released its lease.", id="empty"),
        pytest.param(ABSENT, "Unknown", f"It is unknown whether a manager leads: {LEASE} does not exist.", id="absent"),
    ],
)
def test_row_says_whether_a_manager_leads(found: LeaseReading, state: str, message: str) -> None:
    row = leader_row(found, is_needed=True, now=NOW)
    assert (row.state, row.message, row.is_missing) == (state, message, state == "None")
    assert bool(row.commands) is row.is_missing
    ended = leader_row(found, is_needed=False, now=NOW)
    assert (ended.state, ended.message, ended.is_missing) == (state, "", False)


@pytest.mark.parametrize(
    ("status", "is_missing"),
    [
        pytest.param({"currentPhase": "NodeUpgrading"}, True, id="running"),
        pytest.param({}, True, id="new"),
        pytest.param({"currentPhase": "Failed", "cleanupPending": True}, True, id="cleaning up"),
        pytest.param({"currentPhase": "Failed"}, False, id="failed"),
        pytest.param({"currentPhase": "Succeeded"}, False, id="succeeded"),
    ],
)
def test_plan_that_has_ended_needs_no_leader(status: dict[str, Any], *, is_missing: bool) -> None:
    assert build(plan(**status), [], now=NOW, lease=EXPIRED).leader.is_missing is is_missing


def shown(view: View, *, width: int = 80, form: int = 0) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(Joined(display(view, rows=FORMS[form])), crop=False)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_missing_leader_is_above_everything_else(form: int) -> None:
    view = build(running_plan(), [], now=NOW, lease=EXPIRED)
    *text, check, command, head = shown(view, form=form)[:5]
    assert " ".join(text) == LATE
    assert (check, command) == COMMANDS
    assert head.startswith("UpgradePlan")


def test_leader_is_a_row_where_there_is_room() -> None:
    views = [build(running_plan(), [], now=NOW, lease=one) for one in (LED, ABSENT)]
    rows = [next(line.split(maxsplit=1)[1] for line in shown(v, width=200) if line[:6] == "leader") for v in views]
    assert rows == [POD, f"It is unknown whether a manager leads: {LEASE} does not exist."]
    assert not any("leader" in line for line in shown(views[0], form=2))
    assert not any("leader" in line for line in shown(running_view()))


def test_change_of_the_leader_is_a_line() -> None:
    led, late, later, other = (
        build(plan(), [], now=NOW + timedelta(seconds=more), lease=one)
        for more, one in ((0, LED), (0, EXPIRED), (5, EXPIRED), (9, reading(lease(1, identity="b_1"))))
    )
    assert list(changes(None, led))[:1] != ["leader: "]
    assert list(changes(led, late)) == [f"leader: {LATE} {COMMANDS[0]}"]
    assert list(changes(late, later)) == []
    assert list(changes(late, other)) == ["leader: b"]
    # The upgrade that has ended needs none.
    ended = replace(late, leader=leader_row(EXPIRED, is_needed=False, now=NOW))
    assert [line for line in changes(late, ended) if "leader" in line] == [f"leader: {POD}"]


def test_leader_is_in_the_document() -> None:
    view = build(plan(), [], now=NOW, lease=EXPIRED)
    assert document(view)["leader"] == {
        "state": LeaderState.NONE,
        "holder": POD,
        "renewed": "2030-01-01T13:02:48Z",
        "message": LATE,
        "commands": list(COMMANDS),
    }


def test_hostile_holder_is_one_line() -> None:
    row = leader_row(reading(lease(552, identity="a\x1b[2J\n" + "b" * 999)), is_needed=True, now=NOW)
    assert "\x1b" not in row.message
    assert "\n" not in row.message
    assert len(row.holder) <= 253
