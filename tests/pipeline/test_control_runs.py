"""Pauses, holds, a queue and the history of whole upgrades, on both API servers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.pipeline.test_holds import until_held
from tests.pipeline.test_plan_queue import queued, started
from tests.support.cluster.cluster_state import overridden_settings
from tests.support.cluster.holdings import STATE, upgrade
from tests.support.cluster.simulate import Simulate
from tests.support.managers.begun_while_paused import holds
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, UpgradeRun, condition, phases_of
from tests.support.webhook.policy_prefixes import image_prefixes
from upgrade_manager.api.history import rows_of
from upgrade_manager.api.keys import ANNOTATION_CONTINUE, HARVESTER_SYSTEM
from upgrade_manager.api.names import history_config_map
from upgrade_manager.api.node_states import upgraded_nodes
from upgrade_manager.display.history import is_complete
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import CONFIG_MAPS

HOLDS: dict[str, Any] = {"pauseBefore": ["Drain", "Reboot"], "pauseAfter": 1}
#: Once by the user, twice before steps of a node, and once after it.
PAUSE_ROWS = {"UpgradePaused": 4, "UpgradeContinued": 4, "NodeContinued": 2}
NO_HOLDS = dict.fromkeys(HOLDS)


def _begun(stage: UpgradeRun) -> list[tuple[str, str]]:
    """Return what managers have created, without events and what records the pause itself."""
    return [made for made in stage.ledger.created if made[0].endswith(("/jobs", "/plans", "/virtualmachineimages"))]


async def assert_nothing_begins(stage: UpgradeRun, reason: str) -> None:
    """Check that a plan that holds creates nothing, and that it says so."""
    before = _begun(stage)
    await stage.settle()
    plan = await stage.plan()
    assert (condition(plan, "Paused")[:2], _begun(stage)) == (("True", reason), before)
    assert objects.condition(plan, "Stalled") == {}


async def go_on(stage: UpgradeRun, entry: str) -> None:
    await stage.patch(metadata={"annotations": {ANNOTATION_CONTINUE: entry}})
    await stage.until_plan(lambda plan: ANNOTATION_CONTINUE not in objects.annotations_of(plan))


def _has_paused(plan: Object, *, after: int) -> bool:
    return holds(plan) and upgraded_nodes(objects.status(plan)) == after


@pytest.mark.rule(
    "control: pauseBefore holds each node before its drain and its reboot, until a user lets it go on",
    "control: pauseAfter pauses the upgrade after so many nodes, until it is raised or removed",
)
@pytest.mark.servers
@pytest.mark.long
async def test_upgrade_holds_at_each_kind_of_pause(simulate: Simulate) -> None:
    async with simulate() as simulation:
        settings = await overridden_settings(simulation)
        stage = replace(await UpgradeRun.set_up(simulation), options=OWN)
        async with image_prefixes(simulation, "me/own"), stage.life():
            await stage.create_plan({**BY_VERSION, "nodeUpgradeOption": HOLDS})
            await stage.until("ImagePreloading")
            await stage.patch(spec={"paused": True})
            await stage.until_plan(holds)
            await assert_nothing_begins(stage, "Paused")
            assert phases_of(await stage.plan())[-1] == "ImagePreloaded"
            await stage.patch(spec={"paused": None})
            for point in ("Drain", "Reboot"):
                await until_held(stage, "node-0", point)
                await assert_nothing_begins(stage, "PauseBefore")
                await go_on(stage, f"node-0:{point}")
            await stage.until_plan(partial(_has_paused, after=1))
            await assert_nothing_begins(stage, "PauseAfter")
            await stage.patch(spec={"nodeUpgradeOption": NO_HOLDS})
            plan = await stage.succeed()
            history = await stage.client.get(CONFIG_MAPS, history_config_map(stage.name), namespace=HARVESTER_SYSTEM)
        assert is_complete(plan, history["data"])
        rows = Counter(row.reason for row in rows_of(history["data"]) if row.reason in PAUSE_ROWS)
        assert rows == PAUSE_ROWS
        assert objects.condition(plan, "Paused") == {}
        assert await overridden_settings(simulation) == settings
        assert stage.ledger.conflicts == []


@pytest.mark.servers
async def test_queue_follows_a_built_in_upgrade(simulate: Simulate) -> None:
    async with simulate("one-node") as simulation:
        built_in = upgrade("in progress (state UpgradingNodes)", **{STATE: "UpgradingNodes"})
        await built_in.begin(simulation)
        first = await UpgradeRun.set_up(simulation, name="one")
        second = replace(first, name="two")
        await first.create_plan()
        async with first.life():
            await queued(first, built_in.message)
            await second.create_plan()
            await queued(second, "UpgradePlan one was created before this one, and starts first")
            await built_in.finish(simulation)
            await queued(second, "UpgradePlan one is in progress")
            await first.succeed()
            # The cluster has the release already, so that it ends soon.
            await started(second)
