"""Webhooks that refuse to let the manager remove its objects: neither a plan nor the next one waits for them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from hack.faults.rules import Match, Refuse, Rule
from tests.support.cluster_state import created_objects
from tests.support.polling import eventually
from tests.support.upgrade import REAL_LOOK, UpgradeRun, started

if TYPE_CHECKING:
    from tests.support.simulate import Simulate


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
            await stage.until_recorded("ClusterUpgrading")
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
