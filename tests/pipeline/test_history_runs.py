"""The history of whole upgrades: the report is the same a month later. The crash sweeps compare its rows."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from hack import scenario as scenarios
from hack.demo.commands import scale
from hack.scenario import Scenario
from hack.simulation import Simulation
from tests.support.managers.healthy_run import healthy_run
from tests.support.managers.histories import history_of
from tests.support.managers.upgrade import PLAN, UpgradeRun, started
from upgrade_manager.api.names import history_config_map
from upgrade_manager.display.document import to_json
from upgrade_manager.display.history import is_complete, remember
from upgrade_manager.display.page import to_html
from upgrade_manager.display.report import report
from upgrade_manager.display.view import build
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, EVENTS, JOBS, NODES

MONTH = timedelta(days=31)
THREE = scenarios.load("three-nodes")
SUC = "system-upgrade-controller"
#: Seconds for which the controller is scaled down, which is a blocker.
DOWN = 300.0


async def shown(stage: UpgradeRun, *, now: datetime) -> tuple[str, str]:
    """Return what `report` and `status -o json` print, without the time at which they do."""
    plan, data = await stage.plan(), await history_of(stage)
    events, nodes = (await stage.client.list(EVENTS)).items, (await stage.client.list(NODES)).items
    about = [one for one in events if objects.value(one, "involvedObject", "uid") == objects.uid(plan)]
    page = to_html(report(plan, about, nodes, [], now=now, history=data))
    kept = remember(plan, data, about, nodes)
    return page.replace(f"Created at {now:%Y-%m-%dT%H:%M:%SZ}", ""), to_json(build(kept.plan, kept.events, now=now))


async def pass_month(stage: UpgradeRun) -> None:
    """Let events expire and Jobs go, and upgrade the nodes to a later release."""
    for resource in (EVENTS, JOBS):
        for one in (await stage.client.list(resource)).items:
            await stage.client.delete(resource, objects.name(one), namespace=objects.namespace(one))
    later = {"nodeInfo": {"osImage": "Harvester v1.9.0", "kubeletVersion": "v1.36.0+rke2r1"}}
    for node in (await stage.client.list(NODES)).items:
        await stage.client.patch(NODES, objects.name(node), MergePatch({"status": later}), subresource="status")


def assert_over(blocker: Object, status: Object) -> None:
    """Check that the status keeps the blocker as one that is over."""
    assert "blockers" not in status
    past = status["pastBlockers"][0]
    keys = ("reason", "kind", "name", "since")
    assert [past[key] for key in keys] == [blocker[key] for key in keys]
    assert past["until"].startswith("2026-01-01T00:05:")


@pytest.mark.rule(
    "report: it is the same a month later, without events and Jobs, and with other Nodes",
    "blockers: those that are over stay in the status, with begin and end",
)
@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        pytest.param(THREE, ("NodeRebooting", "SettingRestored", "Harvester v1.8.0"), id="succeeded"),
        pytest.param(
            THREE.changed(faults=[{"work": "post-drain", "node": "node-1"}]),
            ("UpgradeFailed", "Harvester v1.7.1", "PostDrainFailed"),
            id="failed",
        ),
    ],
)
@pytest.mark.full
async def test_report_is_the_same_a_month_later(scenario: Scenario, words: tuple[str, ...]) -> None:
    async with Simulation(scenario.changed(operators=True)) as simulation:
        async with started(simulation) as stage:
            await scale(DEPLOYMENTS, SUC, "cattle-system", 0).run(stage.client)
            await asyncio.sleep(DOWN)
            (blocker,) = objects.status(await stage.plan())["blockers"]
            await scale(DEPLOYMENTS, SUC, "cattle-system", 1).run(stage.client)
            await stage.until_ended()
            await stage.settle()
            assert_over(blocker, objects.status(await stage.plan()))
        assert is_complete(await stage.plan(), await history_of(stage))
        page, document = await shown(stage, now=simulation.now())
        await pass_month(stage)
        assert await shown(stage, now=simulation.now() + MONTH) == (page, document)
    for word in (*words, "UpgradeControllerSilent", "is cleared", "Entering phase ClusterUpgrade"):
        assert word in page


def test_history_goes_with_its_plan() -> None:
    before, after = healthy_run().config_maps
    assert history_config_map(PLAN) in before
    assert history_config_map(PLAN) not in after
