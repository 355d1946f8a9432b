"""Whole upgrades that wait for other controllers: the object is named, and the upgrade goes on once it is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.simulation import Simulation
from tests.support.upgrade import started
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

row = pytest.param


def is_stalled(plan: Object) -> bool:
    return objects.is_condition_true(plan, "Stalled")


@pytest.mark.rule(
    "blockers: a VM that does not leave its node is named with its migration and a command",
    "blockers: a Rancher that does nothing is named with its Deployment or its conditions",
    "blockers: an import without progress is named with its importer's message",
)
@pytest.mark.parametrize(
    ("phase", "actor", "reason", "kind", "name", "minutes"),
    [
        row(
            "ISODownloading",
            "ImageController",
            "ImportStuck",
            "VirtualMachineImage",
            "upgrade-iso",
            10,
            id="import",
        ),
        row("NodeUpgrading", "rancher", "RancherSilent", "Deployment", "rancher", 10, id="rancher"),
        row("NodeUpgrading", "Planner", "RancherSilent", "Cluster", "local", 10, id="planner"),
        row("NodeUpgrading", "virt-controller", "MigrationStuck", "VirtualMachineInstance", "vm-0", 10, id="vms"),
    ],
)
async def test_object_that_holds_the_nodes_up_is_named(
    phase: str, actor: str, reason: str, kind: str, name: str, minutes: int
) -> None:
    async with Simulation() as simulation, started(simulation) as stage:
        await stage.until(phase)
        simulation.freezer.freeze(actor)
        begun = loop_time()
        plan = await stage.until_plan(is_stalled, seconds=1800)
        late = loop_time() - begun - 60 * minutes
        found = objects.status(plan)["blockers"][0]
        assert (found["reason"], found["kind"]) == (reason, kind)
        assert found["name"].startswith(name)
        assert -60 <= late <= 60
        simulation.freezer.thaw(actor)
        await stage.until_plan(lambda plan: not is_stalled(plan), seconds=60)
        await stage.succeed()
        assert {one for one, _ in await stage.warnings()} == {reason}
