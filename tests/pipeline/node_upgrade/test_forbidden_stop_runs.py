"""VMs whose stop a user's PodDisruptionBudget forbids, in a whole upgrade: from their admission to their restart."""

from __future__ import annotations

import pytest

from hack.simulation import Simulation
from tests.pipeline.node_upgrade.test_migration_failure_runs import blockers, halted, recorded, spec
from tests.support.cluster.launchers import INSTANCE, launch, protect, set_least
from tests.support.cluster.simulate import RepairableScenario
from tests.support.managers.resumed_run import reviewed
from tests.support.managers.toolkit_config import OWN
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.api.blockers import BlockerReason

NODE = "node-0"
#: One that cannot move at all, and one whose migration fails.
MACHINES = [
    {"name": "fixed", "node": NODE, "migratable": False},
    {"name": "left", "node": NODE, "failing_migrations": 99},
]


@pytest.mark.rule(
    "nodes: no VM is stopped against a user's PodDisruptionBudget, which KubeVirt's own are not",
    "nodes: Stop, and Harvester's toolkit, stop each VM whose migration fails",
)
async def test_budget_holds_up_the_stop_of_an_admitted_vm() -> None:
    scenario = RepairableScenario.of(operators=True, vms={"count": 0, "machines": MACHINES})
    async with Simulation(scenario) as simulation:
        stage = await UpgradeRun.set_up(simulation)
        stage.options = OWN
        for name in ("fixed", "left"):
            owner = await launch(stage.client, name, app=name, node=NODE)
            # KubeVirt's own, one for each VM.
            await protect(stage.client, f"kubevirt-{name}", least=1, owner=owner, **{INSTANCE: owner["uid"]})
        await protect(stage.client, "users", least=1, app="fixed")
        head = {"metadata": {"name": "upgrade"}}
        (denial,) = await reviewed(stage, {**head, "spec": spec("Stop")})
        assert denial.startswith("VirtualMachine default/fixed cannot be live-migrated")
        restoring = {**spec("Stop"), "restoreVM": True}
        assert await reviewed(stage, {**head, "spec": restoring}) == []
        async with stage.life():
            await stage.create_plan(restoring)
            (found,) = await blockers(stage, "users")
            assert (found.reason, found.kind) == (BlockerReason.EVICTION_FORBIDDEN, "PodDisruptionBudget")
            assert "default/fixed" in found.message
            assert (await halted(stage), await recorded(stage)) == ([], [])
            await set_least(stage.client, "users", 0)
            await stage.until_node("PreDrained", node=NODE)
            stopped = ["fixed", "left"]
            assert (await halted(stage), await recorded(stage)) == (stopped, stopped)
            await stage.succeed()
            assert await halted(stage) == []
