from __future__ import annotations

import json
from typing import Any

from hack.bench.reaction import reactions
from hack.bench.recorder import Exchange
from upgrade_manager.kube.transport import Request

JOB: dict[str, Any] = {"kind": "Job", "metadata": {"uid": "1", "namespace": "harvester-system"}}
COMPLETE = {**JOB, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}


def write(who: str, began: float, obj: dict[str, Any] | None = None, *, path: str = "/api/v1/x") -> Exchange:
    return Exchange(
        request=Request(method="PATCH", path=path, headers={"user-agent": who}),
        status=200,
        began=began,
        ended=began + 1,
        body=json.dumps(obj).encode() if obj else b"",
    )


def measured(*exchanges: Exchange) -> list[float]:
    return reactions(exchanges, manager="manager", os_image="Harvester v1.8.0")


def test_reaction_ends_with_the_next_manager_write() -> None:
    assert measured(write("jobs", 10, JOB), write("jobs", 20, COMPLETE), write("manager/1", 25)) == [4]


def test_events_are_not_reactions() -> None:
    event = write("manager", 12, path="/api/v1/namespaces/default/events")
    assert measured(write("jobs", 10, COMPLETE), event, write("manager", 14)) == [3]


def test_earlier_write_is_not_a_reaction() -> None:
    assert measured(write("jobs", 10, COMPLETE), write("manager", 10.5), write("manager", 13)) == [2]
