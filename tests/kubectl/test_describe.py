"""kubectl describe and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.kubectl import PLANS

if TYPE_CHECKING:
    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


EVENTS = "/api/v1/namespaces/default/events"


def event(plan: dict[str, Any], name: str, *, reason: str, message: str, count: int = 1) -> dict[str, Any]:
    """Build an Event about a plan as the manager records it."""
    metadata, time = plan["metadata"], plan["metadata"]["creationTimestamp"]
    about = {"apiVersion": plan["apiVersion"], "kind": "UpgradePlan", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "metadata": {"name": f"demo.{name}"},
        "involvedObject": about,
        "type": "Normal",
        "reason": reason,
        "message": message,
        "source": {"component": "upgrade-manager"},
        "count": count,
        "firstTimestamp": time,
        "lastTimestamp": time,
    }


async def test_describe_shows_a_plan_with_its_events(cluster: Cluster) -> None:
    plan = await cluster.plan(status={"currentPhase": "Initializing"})
    await cluster.wire.post(EVENTS, event(plan, "1", reason="Initialized", message="the plan is initialized"))
    await cluster.wire.post(EVENTS, event(plan, "2", reason="Waiting", message="for the image", count=3))
    lines = (await cluster.succeed("describe", "up", "demo")).lines
    assert lines[0].split() == ["Name:", "demo"]
    assert ["Current", "Phase:", "Initializing"] in [line.split() for line in lines]
    start = lines.index("Events:")
    rows = [line.split() for line in lines[start + 1 :]]
    assert rows[0] == ["Type", "Reason", "Age", "From", "Message"]
    assert rows[2][:2] == ["Normal", "Initialized"]
    assert rows[2][-5:] == ["upgrade-manager", "the", "plan", "is", "initialized"]
    assert "(x3" in rows[3]


async def test_describe_hides_events_of_an_earlier_plan(cluster: Cluster) -> None:
    plan = await cluster.plan()
    assert (await cluster.succeed("describe", "up", "demo")).rows[-1] == ["Events:", "<none>"]
    await cluster.wire.post(EVENTS, event(plan, "1", reason="Initialized", message="old"))
    listed = await cluster.succeed("events", "--for", "up/demo", "--no-headers")
    assert listed.rows[0][1:] == ["Normal", "Initialized", "UpgradePlan/demo", "old"]
    await cluster.wire.delete(f"{PLANS}/demo")
    await cluster.plan()
    assert (await cluster.succeed("describe", "up", "demo")).rows[-1] == ["Events:", "<none>"]
