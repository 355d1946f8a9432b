"""Webhooks that refuse to let the manager remove its objects: neither a plan nor the next one waits for them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from hack import scenario as scenarios
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import created_objects
from tests.support.managers.upgrade import REAL_LOOK, UpgradeRun, started
from tests.support.programs.polling import eventually
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import JOBS, UPGRADE_PLANS

if TYPE_CHECKING:
    from tests.support.cluster.simulate import Simulate


async def is_refusal_reported(stage: UpgradeRun) -> bool:
    return "a webhook refuses the removal" in str(await stage.warnings())


@pytest.mark.rule("pipeline: a refused removal does not keep a plan that is deleted, nor one that has ended")
@pytest.mark.servers
@pytest.mark.parametrize(("status", "reason"), [(403, "Forbidden"), (409, "Conflict")])
@pytest.mark.parametrize("end", ["deletion", "success"])
@pytest.mark.thin
async def test_refused_removal_blocks_nothing(simulate: Simulate, end: str, status: int, reason: str) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        refusal = Refuse(status=status, reason=reason, message="a webhook refuses the removal")
        rule = Rule(match=Match(verbs=("deletecollection",), resource="services"), action=refusal)
        simulation.middleware.add(rule)
        if end == "deletion":
            # No Job runs that would keep the Service.
            await stage.until_recorded("ImagePreloading")
            await stage.delete()
        else:
            assert await stage.until_ended() == "Succeeded"
        await eventually(partial(is_refusal_reported, stage), seconds=60, pause=REAL_LOOK)
        following = replace(stage, name="next")
        await following.create_plan({"version": "v1.8.0", "force": True})
        assert await following.until("ISODownloading", "Failed") == "ISODownloading"
        simulation.middleware.remove(rule)
        await following.succeed()
        assert await created_objects(simulation) == []


@pytest.mark.rule("nodes: a Job that runs when its plan is deleted runs to its end, whatever the propagation policy")
async def test_refused_orphaning_keeps_neither_plan_nor_job() -> None:
    scenario = scenarios.load("three-nodes").changed(durations={"post_drain": 60})
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        await stage.until_node("PostDraining", node="node-1")
        refusal = Refuse(status=403, reason="Forbidden", message="a webhook refuses the change")
        simulation.middleware.add(Rule(match=Match(verbs=("patch",), resource="jobs.batch"), action=refusal))
        await stage.client.delete(UPGRADE_PLANS, stage.name)
        assert await stage.until("deleted") == "deleted"
        await asyncio.sleep(20)
        job = await stage.client.get(JOBS, "upgrade-node-upgrade-post-drain-node-1", namespace="harvester-system")
        assert objects.status(job)["active"] == 1
        assert not objects.is_deleting(job)
