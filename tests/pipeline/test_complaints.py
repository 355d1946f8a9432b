from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import EVENTS
from upgrade_manager.pipeline.complaints import newest_warning, own_complaint

if TYPE_CHECKING:
    from tests.support.harvester import Harvester
    from upgrade_manager.kube.objects import Object

PLACE = "cattle-system"
SUBJECT = {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "name": "up-x", "namespace": PLACE, "uid": "p-1"}


def plan(*conditions: dict[str, str]) -> Object:
    return {"metadata": {"name": "up-x", "namespace": PLACE, "uid": "p-1"}, "status": {"conditions": [*conditions]}}


def event(message: str, *, at: int = 0, type_: str = "Warning", **subject: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"e-{message}", "namespace": PLACE},
        "involvedObject": {**SUBJECT, **subject},
        "type": type_,
        "reason": "Why",
        "message": message,
        "lastTimestamp": f"2026-01-01T00:00:0{at}Z",
    }


@pytest.mark.rule("workloads: a Plan whose Jobs do not start is reported after a minute with the cause")
@pytest.mark.parametrize(
    ("conditions", "events", "said"),
    [
        pytest.param([], [], "", id="nobody complains"),
        pytest.param([], [event("old"), event("new", at=2), event("mid", at=1)], "new", id="the newest warning"),
        pytest.param([], [event("fine", type_="Normal")], "", id="no ordinary event"),
        pytest.param([], [event("else", name="other")], "", id="none about others"),
        pytest.param([], [event("past", uid="p-0")], "", id="nor about a namesake of the past"),
        pytest.param([], [event("a job's", kind="Job")], "", id="nor about another kind"),
        pytest.param(
            [{"type": "Validated", "status": "False", "message": "no\n secret"}],
            [event("x")],
            "no secret",
            id="invalid",
        ),
        pytest.param(
            [{"type": "Validated", "status": "True", "message": "fine"}], [event("x")], "x", id="valid is no complaint"
        ),
        pytest.param(
            [{"type": "LatestResolved", "status": "False", "message": "no version"}], [], "no version", id="unresolved"
        ),
    ],
)
async def test_who_knows_why_no_job_starts(
    cluster: Harvester, conditions: list[dict[str, str]], events: list[dict[str, Any]], said: str
) -> None:
    for one in events:
        await cluster.put(EVENTS, {**one, "metadata": {**one["metadata"], "name": f"e{events.index(one)}"}})
    found = plan(*conditions)
    assert (own_complaint(found) or await newest_warning(cluster.client, found, kind="Plan")) == said


async def test_a_job_has_events_too(cluster: Harvester) -> None:
    of_job = event("a job's", apiVersion="batch/v1", kind="Job", uid="j-1")
    for number, one in enumerate((event("a plan's"), of_job)):
        await cluster.put(EVENTS, {**one, "metadata": {"name": f"e{number}", "namespace": PLACE}})
    job = {"metadata": {"name": "up-x", "namespace": PLACE, "uid": "j-1"}}
    assert await newest_warning(cluster.client, job, kind="Job") == "a job's"


async def test_events_that_cannot_be_read_are_no_error(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise Transient("away")

    monkeypatch.setattr(cluster.client, "list", refuse)
    assert await newest_warning(cluster.client, plan(), kind="Plan") == ""
