"""Pauses, holds, a queue and the history of whole upgrades, on both API servers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.pipeline.test_attempts import SINGLE
from tests.pipeline.test_holds import until_held
from tests.pipeline.test_plan_queue import queued, started
from tests.support.cluster.cluster_state import overridden_settings
from tests.support.cluster.holdings import HOLDINGS
from tests.support.cluster.simulate import RepairableScenario, Simulate, fault
from tests.support.managers.begun_while_paused import holds
from tests.support.managers.resumed_run import Work, cut_short, request_attempt
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import BY_VERSION, PLAN, UpgradeRun, condition, node_states, phases_of
from tests.support.webhook.policy_prefixes import image_prefixes
from upgrade_manager.api.history import rows_of
from upgrade_manager.api.keys import ANNOTATION_CONTINUE, HARVESTER_SYSTEM, LABEL_JOB_TYPE
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
@pytest.mark.full
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


#: The holders of which a real API server, or one of its controllers, shows each kind.
IN_TURN = (
    "a built-in upgrade",
    "an orphaned Job",
    "a node that joins",
    "an addon that is updated",
    "an update by Rancher",
)


@pytest.mark.servers
@pytest.mark.full
async def test_plan_follows_its_holders_and_its_own_failure(simulate: Simulate) -> None:
    """Each holder begins before the one before it ends."""
    scenario = RepairableScenario.of("one-node", **fault("single-node-upgrade"))
    async with simulate(scenario) as simulation:
        holdings = [HOLDINGS[name] for name in IN_TURN]
        await holdings[0].hang(simulation)
        first = replace(await UpgradeRun.set_up(simulation, name=PLAN), options=OWN)
        second = replace(first, name="two")
        work = simulation.middleware.hook = Work()
        await first.create_plan()
        async with image_prefixes(simulation, "me/own"), first.life():
            for holding, following in zip(holdings, [*holdings[1:], None], strict=True):
                await queued(first, holding.message)
                if following is not None:
                    await following.hang(simulation)
                await holding.finish(simulation)
            if simulation.backend.has_controllers:
                await cut_short(first, f"{LABEL_JOB_TYPE}=single-node-upgrade")
            failed = await first.fail()
            assert node_states(failed) == {"node-0": "SingleNodeUpgradeFailed"}
            scenario.repair()
            await request_attempt(first, work)
            await second.create_plan()
            await queued(second, f"UpgradePlan {PLAN} is in progress")
            await first.succeed()
            assert work.of(2) == sorted(SINGLE)
            # The cluster has the release already, so that it ends soon.
            await started(second)
