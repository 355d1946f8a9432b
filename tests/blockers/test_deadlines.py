"""The deadlines of waits, before any object is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.blockers import known_wait as known
from upgrade_manager.blockers import wait as waits
from upgrade_manager.blockers.deadlines import DRAIN, EVACUATION, PLANNER, REBOOT, START, earliest, leftover_budgets
from upgrade_manager.blockers.table import FINDERS

if TYPE_CHECKING:
    from upgrade_manager.blockers.wait import Wait

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
AT_ONCE = timedelta(0)
#: Fields that only some classes have.
FIELDS: dict[str, Any] = {
    "imported": NOW,
    "stepped": NOW,
    "undisturbed": NOW,
    "released": NOW,
    "ready_changed": NOW,
    "pods": "",
    "remedies": (),
    "release_os": "",
}


def wait(kind: type[Wait], **more: Any) -> Wait:
    known = {name: value for name, value in FIELDS.items() if name in kind.__dataclass_fields__}
    return kind(**{"namespace": "ns", "name": "x", "node": "n1", "since": NOW, **known, **more})


@pytest.mark.parametrize(
    ("waiting", "limit"),
    [
        pytest.param(wait(waits.JobWait), START, id="Job without a Pod"),
        pytest.param(wait(waits.JobWait, is_running=True, expected=90.0), timedelta(seconds=90), id="Job that runs"),
        pytest.param(wait(waits.ImageWait), timedelta(minutes=10), id="import"),
        pytest.param(wait(waits.RancherWait), PLANNER, id="planner"),
        pytest.param(wait(waits.DrainWait), DRAIN, id="drain"),
        pytest.param(wait(waits.DrainWait, detail="refused"), AT_ONCE, id="drain with an error"),
        pytest.param(wait(waits.DrainWait, is_drained=True), PLANNER, id="drained node"),
        pytest.param(wait(waits.EvacuationWait), EVACUATION, id="evacuation"),
        pytest.param(wait(waits.EvacuationWait, node="n" * 64), None, id="name that is not a label value"),
        pytest.param(wait(waits.RebootWait), REBOOT, id="reboot"),
        pytest.param(wait(waits.RebootWait, is_ready=True, ready_changed=LATER), REBOOT, id="reboot that is not seen"),
        pytest.param(
            wait(waits.RebootWait, is_ready=True, ready_changed=LATER, has_rebooted=True), LATER - NOW, id="fell back"
        ),
        pytest.param(wait(waits.LostNodeWait, is_ready=True), AT_ONCE, id="node with another OS"),
        pytest.param(wait(known.PausedNodeWait), AT_ONCE, id="paused node"),
        pytest.param(wait(known.LostHookWait), timedelta(minutes=10), id="hook that does not come"),
    ],
)
def test_wait_is_overdue_after_its_limit(waiting: Wait, limit: timedelta | None) -> None:
    assert earliest(FINDERS, [waiting], now=NOW) == (None if limit is None else limit.total_seconds())


def test_earliest_deadline_counts_from_its_own_beginning() -> None:
    old = wait(waits.RancherWait, since=NOW - PLANNER + timedelta(seconds=7))
    assert earliest(FINDERS, [wait(waits.JobWait), old], now=NOW) == 7
    assert earliest(FINDERS, [wait(waits.JobWait), old], now=NOW + timedelta(seconds=10)) == -3
    assert earliest(FINDERS, [], now=NOW) is None


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        pytest.param({}, None, id="before the step"),
        pytest.param({"at_budgets": NOW + timedelta(hours=1)}, timedelta(hours=1) + EVACUATION, id="from the step on"),
        pytest.param({"at_budgets": NOW, "is_running": False}, None, id="Job that does not run"),
    ],
)
def test_leftover_budgets_have_a_deadline_of_their_own(more: dict[str, Any], limit: timedelta | None) -> None:
    evacuation = wait(waits.EvacuationWait, **{"is_running": True, **more})
    assert isinstance(evacuation, waits.EvacuationWait)
    assert leftover_budgets(evacuation) == limit
