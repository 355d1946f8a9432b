"""A healthy upgrade by a manager whose clock is wrong: nothing is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from tests.support.cluster.simulate import Simulate


@pytest.mark.rule("blockers: ages are compared by the API server's clock")
@pytest.mark.servers
@pytest.mark.parametrize("skew", [90.0, -90.0], ids=["ahead", "behind"])
@pytest.mark.thin
async def test_wrong_clock_causes_no_warning(simulate: Simulate, skew: float) -> None:
    async with simulate() as simulation:
        stage = replace(await UpgradeRun.set_up(simulation), skew=skew)
        async with stage.life():
            await stage.create_plan()
            await stage.succeed()
        assert await stage.warnings() == []
        plan = await stage.plan()
        created = parse_time(objects.metadata(plan)["creationTimestamp"])
        (first, *_) = objects.status(plan)["phaseTransitionTimestamps"]
        began = parse_time(first["phaseTransitionTimestamp"])
        assert created is not None
        assert began is not None
        assert abs((began - created).total_seconds()) <= 3
