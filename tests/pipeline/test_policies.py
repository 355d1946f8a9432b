"""Whole upgrades on the real API server whose policies do not agree with the manager's options."""

from __future__ import annotations

import pytest

from tests.support.cluster.simulate import Simulate
from tests.support.managers.upgrade import UpgradeRun, condition
from tests.support.webhook.policy_prefixes import image_prefixes

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

OTHER = "registry.example/mirror"
PARTS = ("upgradeplans", '"upgrade"', "harvester-upgrade-manager-plan-status", OTHER, "toolkit.imagePrefixes")


@pytest.mark.rule("permissions: a policy that refuses a write is named with the object and what to do")
async def test_prefix_that_differs_is_named_until_corrected(simulate: Simulate) -> None:
    async with simulate() as simulation:
        stage = await UpgradeRun.set_up(simulation)
        async with image_prefixes(simulation, OTHER):
            await stage.create_plan()
            async with stage.life():
                plan = await stage.until_plan(lambda plan: condition(plan, "Degraded")[0] == "True")
        message = condition(plan, "Degraded")[2]
        assert [part for part in PARTS if part not in message] == []
        async with stage.life():
            await stage.succeed()
