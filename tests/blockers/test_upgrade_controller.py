from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.upgrade_controller import FINDERS
from upgrade_manager.blockers.wait import Wait, WaitKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker

row = pytest.param
DEPLOYMENT = "Deployment cattle-system/system-upgrade-controller"
LOGS = "kubectl -n cattle-system logs deploy/system-upgrade-controller"
STATUS = "kubectl -n cattle-system rollout status deploy/system-upgrade-controller"
EVENT = {"involvedObject": {"name": "p"}, "message": "jobs.batch is forbidden"}


def blockers(view: FakeView, *, age: float = 60, detail: str = "") -> Sequence[Blocker]:
    since = view.ago(age)
    wait = Wait(kind=WaitKind.PLAN, namespace="cattle-system", name="p", since=since, progressed=since, detail=detail)
    return find_blockers(FINDERS, view, [wait], []).blockers


@pytest.mark.parametrize(
    ("deployment", "detail", "events", "message", "remedy"),
    [
        row([], "", [EVENT], f"{DEPLOYMENT} does not exist; Plan p gets no Jobs", STATUS, id="no controller"),
        row([{}], "", [], f"{DEPLOYMENT} is not available; Plan p gets no Jobs", STATUS, id="without status"),
        row([0], "", [], f"{DEPLOYMENT} is not available; Plan p gets no Jobs", STATUS, id="not available"),
        row(
            [1],
            "plan is not valid",
            [EVENT],
            "Plan cattle-system/p gets no Jobs (plan is not valid)",
            LOGS,
            id="says why",
        ),
        row([1], "", [EVENT], "Plan cattle-system/p gets no Jobs (jobs.batch is forbidden)", LOGS, id="event"),
        row([1], "", [], "Plan cattle-system/p gets no Jobs (the controller does not say why)", LOGS, id="silent"),
    ],
)
def test_silent_controller(
    view: FakeView, deployment: list[Any], detail: str, events: list[Any], message: str, remedy: str
) -> None:
    view.found["Deployment"] = [{"status": {"availableReplicas": one}} if one != {} else one for one in deployment]
    view.found["Event"] = events
    assert blockers(view, age=59) == []
    (found,) = blockers(view, detail=detail)
    assert (found.reason, found.message, found.remedy) == ("UpgradeControllerSilent", message, remedy)
