"""The label of the active plan, by which a policy selects it: with the finalizer, and on one plan at most."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import groupby

import pytest

from hack.bench.in_process import MANAGER, record
from hack.bench.recorder import Exchange
from tests.support.cluster.simulate import Simulate
from tests.support.managers.healthy_run import healthy_run
from tests.support.managers.upgrade import REAL_LOOK, UpgradeRun, started
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import FINALIZER, LABEL_ACTIVE
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import UPGRADE_PLANS

LABELED = {LABEL_ACTIVE: "true"}


def marks(plan: Object) -> tuple[bool, bool]:
    """Return whether the plan has the finalizer, and whether it has the label."""
    return FINALIZER in objects.finalizers(plan), objects.labels(plan).get(LABEL_ACTIVE) == "true"


def marks_of(exchanges: Iterable[Exchange]) -> list[tuple[bool, bool]]:
    """Return both marks after the manager's patches of the plan, once for each change."""
    patches = [one for one in exchanges if one.request.method == "PATCH" and "/upgradeplans/" in one.request.path]
    return [found for found, _ in groupby(marks(json.loads(one.body)) for one in patches)]


@pytest.mark.full
@pytest.mark.rule(
    "api: the label active is set and removed with the finalizer, and added again if it is lost",
    "nodes: the finalizer of an ended plan is removed after its clean-up",
)
def test_label_is_removed_with_the_finalizer_after_success() -> None:
    run = healthy_run()
    assert marks_of(run.exchanges) == [(True, True), (False, False)]
    assert marks(run.plan) == (False, False)


@pytest.mark.rule("api: the label active is set and removed with the finalizer, and added again if it is lost")
async def test_label_is_removed_with_the_finalizer_at_a_deletion(simulate: Simulate) -> None:
    async with simulate(scale=0.2) as simulation, started(simulation) as stage:
        recorder = record(simulation)
        await stage.until_recorded("ImagePreloading")
        await stage.delete()
    assert marks_of(recorder.of(MANAGER)) == [(True, True), (False, False)]


async def has_both(stage: UpgradeRun) -> bool:
    return marks(await stage.plan()) == (True, True)


async def has_none(stage: UpgradeRun) -> bool:
    return marks(await stage.plan()) == (False, False)


@pytest.mark.rule("api: the label active is set and removed with the finalizer, and added again if it is lost")
@pytest.mark.servers
async def test_lost_label_is_added_again(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_recorded("ImagePreloading")
        for lost in (None, "false"):
            await stage.patch(metadata={"labels": {LABEL_ACTIVE: lost}})
            assert await eventually(partial(has_both, stage), seconds=60, pause=REAL_LOOK)


@pytest.mark.rule("api: at most one plan has the label active")
async def test_copied_label_is_removed_from_a_blocked_plan(simulate: Simulate) -> None:
    async with simulate() as simulation, started(simulation) as stage:
        await stage.until_recorded("ImagePreloading")
        second = replace(stage, name="second")
        await second.create_plan(labels=LABELED)
        assert await eventually(partial(has_none, second), seconds=60, pause=REAL_LOOK)
        await second.patch(metadata={"labels": LABELED})
        assert await eventually(partial(has_none, second), seconds=60, pause=REAL_LOOK)
        assert await has_both(stage)


@pytest.mark.full
@pytest.mark.rule("api: at most one plan has the label active")
async def test_label_is_removed_from_an_ended_and_a_deleted_plan(simulate: Simulate) -> None:
    async with simulate(scale=0.2) as simulation, started(simulation) as stage:
        await stage.succeed()
        await stage.patch(metadata={"labels": LABELED})
        assert await eventually(partial(has_none, stage), seconds=60, pause=REAL_LOOK)
        await stage.patch(metadata={"finalizers": ["example.org/hold"]})
        await stage.client.delete(UPGRADE_PLANS, stage.name)
        await stage.patch(metadata={"labels": LABELED})
        assert await eventually(partial(has_none, stage), seconds=60, pause=REAL_LOOK)
