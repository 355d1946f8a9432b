"""The node upgrade with VMs that are to be started again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.node_upgrade import COMPLETE, OPTIONS, PLACE, POST, PRE, NodeUpgradeRun
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, UPGRADE_PLANS
from upgrade_manager.pipeline.phases.base import Failed, Waiting


async def back(stage: NodeUpgradeRun, *nodes: str) -> None:
    """All nodes but the last have been upgraded up to their reboot, with VMs listed for them."""
    await stage.set_up(*nodes)
    patch = MergePatch({"spec": {"restoreVM": True}})
    await stage.cluster.client.patch(UPGRADE_PLANS, "up", patch)
    await stage.enter()
    await stage.run()
    data = {node: f"default/vm-{node}" for node in nodes}
    await stage.cluster.put(CONFIG_MAPS, {"metadata": {"name": "up-restore-vm", "namespace": PLACE}, "data": data})
    await stage.rancher(nodes[0], pre=OPTIONS)
    await stage.run()
    await stage.finish(nodes[0], "pre-drain", COMPLETE)
    await stage.run()
    await stage.rancher(nodes[0], post=OPTIONS)
    await stage.run()
    await stage.finish(nodes[0], "post-drain", COMPLETE)
    await stage.run()
    assert "restore-vm" not in "".join(await stage.cluster.names(JOBS))
    await stage.reboot(nodes[0])


@pytest.mark.rule("nodes: VMs are restored only after the node is back")
@pytest.mark.parametrize("deaths", [0, 3], ids=["recorded", "killed before the record, three times"])
async def test_one_restore_job_and_none_after_the_record(stage: NodeUpgradeRun, deaths: int) -> None:
    await back(stage, "n1", "n2")
    for _ in range(deaths):
        await stage.run(record=False)
    await stage.run()
    job = "up-node-upgrade-restore-vm-n1"
    assert job in await stage.cluster.names(JOBS)
    await stage.cluster.client.delete(JOBS, job, namespace=PLACE)
    await stage.run()
    assert job not in await stage.cluster.names(JOBS)
    assert stage.warned() == []


async def test_next_node_starts_while_vms_are_restored(stage: NodeUpgradeRun) -> None:
    await back(stage, "n1", "n2")
    await stage.rancher("n2", pre=OPTIONS)
    await stage.run()
    await stage.run()
    assert await stage.states() == {"n1": "PostDrained", "n2": "PreDraining"}


async def test_restore_error_is_retried_and_blocks_no_node(
    stage: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await back(stage, "n1", "n2")
    await stage.rancher("n2", pre=OPTIONS)

    async def fails(*_: Any, **__: Any) -> Any:
        raise Transient("no answer")

    with monkeypatch.context() as broken:
        broken.setattr("upgrade_manager.pipeline.vm_restore._has_vms", fails)
        with pytest.raises(Transient):
            await stage.run()
    assert await stage.acknowledgements("n1") == {PRE: OPTIONS, POST: OPTIONS}
    assert "up-node-upgrade-pre-drain-n2" in await stage.cluster.names(JOBS)
    assert (await stage.states())["n1"] == "WaitingReboot"
    await stage.run()
    assert (await stage.states())["n1"] == "PostDrained"
    assert "up-node-upgrade-restore-vm-n1" in await stage.cluster.names(JOBS)


@pytest.mark.rule("nodes: a failed restore-vm Job fails neither node nor upgrade")
async def test_restore_failure_fails_neither_node_nor_plan(stage: NodeUpgradeRun) -> None:
    await back(stage, "n1", "n2")
    await stage.run()
    reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    await stage.finish("n1", "restore-vm", {"conditions": [reason], "failed": 3})
    for _ in range(3):
        assert isinstance(await stage.run(), Waiting)
    plan = await stage.cluster.client.get(UPGRADE_PLANS, "up")
    job = "Job harvester-system/up-node-upgrade-restore-vm-n1 failed: BackoffLimitExceeded"
    message = f"its VMs were not all started again: {job}"
    assert plan["status"]["nodeUpgradeStatuses"]["n1"] == {"state": "PostDrained", "message": message}
    assert {reason for reason, _ in stage.warned()} == {"RestoreVMFailed"}
    assert len({name for _, name in stage.warned()}) == 1


async def test_other_nodes_failure_is_not_a_restore_failure(stage: NodeUpgradeRun) -> None:
    await back(stage, "n1", "n2")
    await stage.rancher("n2", pre=OPTIONS)
    await stage.run()
    await stage.run()
    reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    await stage.finish("n1", "restore-vm", {"conditions": [reason]})
    await stage.finish("n2", "pre-drain", {"conditions": [reason]})
    outcome = await stage.run()
    assert isinstance(outcome, Failed)
    assert outcome.cause.startswith("node n2 upgrade failed: Job harvester-system/up-node-upgrade-pre-drain-n2 failed")
