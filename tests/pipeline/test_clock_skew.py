"""A healthy upgrade by a manager whose clock is wrong: nothing is reported."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from hack.bench.in_process import LoopClock
from tests.support.managers import upgrade
from tests.support.managers.upgrade import started
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from tests.support.cluster.simulate import Simulate


class SkewedClock(LoopClock):
    """The manager's clock, which is wrong by some seconds."""

    seconds = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.seconds)


@pytest.fixture(params=[90.0, -90.0], ids=["ahead", "behind"])
def skew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(SkewedClock, "seconds", request.param)
    monkeypatch.setattr(upgrade, "LoopClock", SkewedClock)
    return float(request.param)


@pytest.mark.rule("blockers: ages are compared by the API server's clock")
@pytest.mark.servers
@pytest.mark.usefixtures("skew")
async def test_wrong_clock_causes_no_warning(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.succeed()
        assert await stage.warnings() == []
        plan = await stage.plan()
        created = parse_time(objects.metadata(plan)["creationTimestamp"])
        (first, *_) = objects.status(plan)["phaseTransitionTimestamps"]
        began = parse_time(first["phaseTransitionTimestamp"])
        assert created is not None
        assert began is not None
        assert abs((began - created).total_seconds()) <= 3
