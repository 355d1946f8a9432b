"""The way of a healthy reconcile through the code stays short: each file that it enters has to be read to follow it."""

from __future__ import annotations

from hack.simulation import Simulation
from tests.support.managers.entered_files import EnteredFiles, recorded
from tests.support.managers.upgrade import started

#: Files of upgrade_manager, in any package, from `PlanReconciler.reconcile` inwards.
LIMIT, QUIET_LIMIT = 40, 38
#: The journey of one event, as ARCHITECTURE.md has it.
JOURNEY = {
    "pipeline/reconciler.py",
    "pipeline/context.py",
    "pipeline/engine.py",
    "pipeline/node_upgrade/phase.py",
    "nodes/node_view.py",
    "nodes/drain.py",
    "pipeline/node_upgrade/effects.py",
    "kube/client.py",
    "pipeline/status.py",
}


def of_completed_job(entered: EnteredFiles) -> bool:
    return entered.moved_to("PreDrained")


def of_quiet_node_upgrade(entered: EnteredFiles) -> bool:
    return entered.is_quiet and entered.phase == "NodeUpgrading"


def of_image_preload(entered: EnteredFiles) -> bool:
    return entered.phase == "ImagePreloading"


async def test_healthy_reconcile_enters_few_files() -> None:
    with recorded() as reconciles:
        async with Simulation("three-nodes") as simulation, started(simulation) as stage:
            await stage.succeed()
    nodes = len(simulation.scenario.nodes.names)
    assert sum(map(of_completed_job, reconciles)) == nodes
    for is_meant, limit in ((of_completed_job, LIMIT), (of_quiet_node_upgrade, QUIET_LIMIT), (of_image_preload, LIMIT)):
        found = [one for one in reconciles if is_meant(one)]
        assert len(found) >= nodes
        longest = max(found, key=lambda one: len(one.files))
        assert len(longest.files) <= limit, str(longest)
    # The measure sees what runs.
    assert all(one.files.keys() >= JOURNEY for one in reconciles if of_completed_job(one))
