from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from hack.virtual_time import virtual_now
from tests.support.toolkit.toolkit import PLAN, toolkit_world
from upgrade_manager.kube.resources import EVENTS, UPGRADE_PLANS
from upgrade_manager.toolkit.run.plan_events import NORMAL, PlanEvents


async def test_event_is_recorded_on_the_plan(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        events = world.context().events
        await events.record("restore-vm", type_=NORMAL, reason="RestoreVMCompleted", message="Restored 2 VMs")
        plan = await world.client.get(UPGRADE_PLANS, PLAN)
        [event] = (await world.client.list(EVENTS, namespace="default")).items
        assert event["involvedObject"]["uid"] == plan["metadata"]["uid"]
        assert (event["type"], event["reason"], event["message"], event["source"]["component"]) == (
            "Normal",
            "RestoreVMCompleted",
            "Restored 2 VMs",
            "restore-vm",
        )


async def test_event_of_a_reason_is_recorded_once(tmp_path: Path) -> None:
    async with toolkit_world(tmp_path) as world:
        events = world.context().events
        for message in ("first", "second"):
            await events.record_once("drain", type_=NORMAL, reason="DrainTaintRemoved", message=message)
        await events.record_once("drain", type_=NORMAL, reason="Another", message="third")
        found = (await world.client.list(EVENTS, namespace="default")).items
        assert sorted(event["message"] for event in found) == ["first", "third"]


@pytest.mark.parametrize(("plan", "uid"), [("absent", ""), (PLAN, "of-an-earlier-plan")])
async def test_event_about_an_absent_plan_is_logged(tmp_path: Path, plan: str, uid: str) -> None:
    async with toolkit_world(tmp_path) as world:
        events = PlanEvents(world.client, plan, plan_uid=uid, now=virtual_now, random=Random(1))
        with capture_logs() as logs:
            await events.record("restore-vm", type_=NORMAL, reason="RestoreVMCompleted", message="Restored 2 VMs")
        assert [line["event"] for line in logs] == ["event not recorded"]
