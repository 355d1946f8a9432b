"""A plan takes over what an earlier one has left once its checks have passed, and leaves it alone if they fail."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from hack.faults.middleware import Middleware
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.pipeline.ending.test_passing_on import CHECKED
from tests.pipeline.ending.test_settlement import SINCE
from tests.pipeline.test_attempts_repeated import failed_run
from tests.support.cluster.cluster_state import created_objects
from tests.support.cluster.harvester import Harvester
from tests.support.cluster.simulate import SECOND, RepairableScenario, fault
from tests.support.managers.manager_restarts import UNDISTURBED, Interruption, restarted
from tests.support.managers.resumed_run import request_attempt
from tests.support.managers.sweep import Sweep
from tests.support.managers.upgrade import BY_VERSION, condition, node_states, started
from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import DEPLOYMENTS, UPGRADE_PLANS, VIRTUAL_MACHINE_IMAGES
from upgrade_manager.pipeline.ending import passing_on
from upgrade_manager.resources.owner import Owner

THIRD = "node-0"


@pytest.mark.full
@pytest.mark.rule("control: a plan whose checks fail takes nothing from an earlier one, which can still be retried")
async def test_plan_that_fails_its_checks_takes_nothing_over() -> None:
    async with failed_run("pre-drain") as (stage, work, scenario):
        before = objects.status(await stage.plan())
        full = RepairableScenario.of(nodes={"disks": {THIRD: {"used_gib": 299}}}).nodes
        scenario.__dict__["nodes"] = full
        following = replace(stage, name="next")
        await following.create_plan()
        await following.fail()
        await following.settle()
        assert objects.status(await stage.plan()) == before
        assert await stage.client.get(VIRTUAL_MACHINE_IMAGES, "upgrade-iso", namespace=HARVESTER_SYSTEM)
        scenario.repair()
        await request_attempt(stage, work)
        await stage.succeed()
        # Only one of two failed plans can go on.
        assert condition(await following.plan(), "Degraded")[1] == "TakenOver"


async def _taken_over(interruption: Interruption = UNDISTURBED) -> tuple[list[str], Any]:
    """Let a plan follow a failed one, with a manager that is interrupted; return its writes, and what is left."""
    scenario = RepairableScenario.of("three-nodes", **fault("pre-drain", SECOND))
    async with Simulation(scenario, scale=0) as simulation:
        async with started(simulation) as stage:
            await stage.fail()
            await stage.settle()
        scenario.repair()
        following = replace(stage, name="next")
        async with restarted(following, [interruption]) as managers:
            await following.create_plan(BY_VERSION)
            done = await following.succeed()
        earlier = objects.status(await stage.plan())
        assert condition(await stage.plan(), "Degraded")[1] == "TakenOver"
        assert {"nextSteps", "advised"}.isdisjoint(earlier)
        kinds = [entry["kind"] for entry in earlier["ledger"]]
        left = [objects.status(done)["ledger"], kinds, node_states(done)]
        return managers.lives[0].wire.writes, (left, await created_objects(simulation))


@pytest.mark.rule("control: a plan that passes its checks takes over, once, wherever its manager is killed")
@pytest.mark.timeout(600)
@pytest.mark.full
async def test_successor_takes_over_wherever_its_manager_dies(sweep: Sweep) -> None:
    writes, golden = await _taken_over()
    taking = [number for number, write in enumerate(writes, 1) if "/upgradeplans/upgrade/status" in write]
    assert len(taking) == 2
    for write in sweep.points(taking[0] - 2, taking[-1] + 1, stride=7):
        _, found = await _taken_over(Interruption(die_at=write, after=True))
        assert found == golden, f"killed after write {write}: {writes[write - 1]}"


def refusing(cluster: Harvester, resource: str) -> Client:
    middleware = Middleware(cluster.server, random=Random(0))
    match = Match(verbs=("deletecollection",), resource=resource)
    middleware.add(Rule(match=match, action=Refuse(status=403, reason="Refused", message="no")))
    return Client(middleware, user_agent="test", random=Random(0))


@pytest.mark.rule("control: a payload whose removal is refused stays with its plan, and does not hold up the next one")
async def test_refused_removal_of_the_payload_holds_nothing_up(cluster: Harvester) -> None:
    failed = {"type": "Progressing", "status": "False", "reason": "Failed", "message": "x", "lastTransitionTime": SINCE}
    status = {"currentPhase": "Failed", "nextSteps": [{"text": "Retry"}], "conditions": [failed], "isoImageID": "iso"}
    earlier = cluster.context(await cluster.plan("earlier", status=status))
    labels = Owner.of(earlier.raw, has_unlabeled=False).labels(Component.ISO)
    metadata = {"name": "iso", "namespace": HARVESTER_SYSTEM, "labels": labels}
    image = {"metadata": metadata, "spec": {"displayName": "x", "sourceType": "upload"}}
    await cluster.put(VIRTUAL_MACHINE_IMAGES, image)
    following = cluster.context(await cluster.plan("next", status=CHECKED))
    with capture_logs() as logs:
        refused = replace(earlier, client=refusing(cluster, VIRTUAL_MACHINE_IMAGES.name))
        assert await passing_on.release(following, [refused])
    assert [one["plan"] for one in logs if one["event"] == "payload of an earlier plan not removed"] == ["earlier"]
    assert await cluster.names(VIRTUAL_MACHINE_IMAGES) == ["iso"]
    assert await cluster.names(DEPLOYMENTS) == []
    found = await cluster.client.get(UPGRADE_PLANS, "earlier")
    assert condition(found, "Degraded")[1] == "TakenOver"
    assert "nextSteps" not in objects.status(found)
