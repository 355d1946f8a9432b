"""The node upgrade with VMs that are to be started again."""

from __future__ import annotations

from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, PRE
from tests.support.managers.node_upgrade import PLACE, NodeUpgradeRun
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS, JOBS, UPGRADE_PLANS
from upgrade_manager.pipeline.outcome import Failed, Waiting

JOB = "restore-vm-n1"


@pytest.fixture
async def back(stage: NodeUpgradeRun) -> NodeUpgradeRun:
    """Upgrade the first of two nodes up to its reboot, with VMs listed for both."""
    await stage.set_up("n1", "n2")
    await stage.client.patch(UPGRADE_PLANS, "up", MergePatch({"spec": {"restoreVM": True}}))
    await stage.enter()
    await stage.run()
    data = {"n1": "default/vm-n1", "n2": "default/vm-n2"}
    await stage.cluster.put(CONFIG_MAPS, {"metadata": {"name": "up-restore-vm", "namespace": PLACE}, "data": data})
    for hook in ("pre", "post"):
        await stage.request("n1", hook)
        await stage.complete("n1", f"{hook}-drain")
    assert "restore-vm" not in "".join(await stage.jobs())
    await stage.reboot("n1")
    return stage


@pytest.mark.rule("nodes: VMs are restored only after the node is back")
@pytest.mark.parametrize("deaths", [0, 3], ids=["recorded", "killed before the record, three times"])
async def test_one_restore_job_and_none_after_the_record(back: NodeUpgradeRun, deaths: int) -> None:
    for _ in range(deaths):
        await back.run(record=False)
    await back.run()
    assert JOB in await back.jobs()
    await back.client.delete(JOBS, f"up-node-upgrade-{JOB}", namespace=PLACE)
    await back.run()
    assert JOB not in await back.jobs()
    assert back.warned() == []


async def test_next_node_starts_while_vms_are_restored(back: NodeUpgradeRun) -> None:
    await back.request("n2", "pre")
    await back.run()
    assert await back.states() == {"n1": "PostDrained", "n2": "PreDraining"}


async def test_restore_error_is_retried_and_blocks_no_node(
    back: NodeUpgradeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    await back.rancher("n2", pre=OPTIONS)
    with monkeypatch.context() as broken:
        broken.setattr(
            "upgrade_manager.pipeline.node_upgrade.vm_restore._own_list", AsyncMock(side_effect=Transient("no answer"))
        )
        with pytest.raises(Transient):
            await back.run()
    assert await back.acknowledgements("n1") == {PRE: OPTIONS, POST: OPTIONS}
    assert "pre-drain-n2" in await back.jobs()
    assert (await back.states())["n1"] == "WaitingReboot"
    await back.run()
    assert (await back.states())["n1"] == "PostDrained"
    assert JOB in await back.jobs()


@pytest.mark.rule("nodes: a failed restore-vm Job fails neither node nor upgrade")
async def test_restore_failure_fails_neither_node_nor_plan(back: NodeUpgradeRun) -> None:
    await back.run()
    await back.fail("n1", "restore-vm")
    for _ in range(3):
        assert isinstance(await back.run(), Waiting)
    job = "Job harvester-system/up-node-upgrade-restore-vm-n1 failed 3 times: BackoffLimitExceeded"
    entry = (await back.status())["nodeUpgradeStatuses"]["n1"]
    assert (entry["state"], entry["reason"]) == ("PostDrained", "RestoreVMFailed")
    assert job in entry["message"]
    assert {reason for reason, _ in back.warned()} == {"RestoreVMFailed"}
    assert len({name for _, name in back.warned()}) == 1


async def test_other_nodes_failure_is_not_a_restore_failure(back: NodeUpgradeRun) -> None:
    await back.request("n2", "pre")
    await back.run()
    await back.fail("n1", "restore-vm")
    await back.fail("n2", "pre-drain")
    outcome = await back.run()
    assert isinstance(outcome, Failed)
    assert outcome.cause.startswith("Node n2: pre-drain failed 3 times: ")
