from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.cluster_reader import create
from tests.support.cluster.instances import GPU, OWNER, affinity, instance
from tests.support.cluster.simulate import Simulate
from tests.support.cluster.vm_world import (
    ELSEWHERE,
    FIXED,
    FREE,
    messages,
    nodes_of_vms,
    recorded,
    set_instance,
    strategy,
    vm_world,
)
from tests.support.toolkit.toolkit import NODE, PLAN, ToolkitWorld
from upgrade_manager.api.keys import HARVESTER_SYSTEM, WITNESS_LABEL
from upgrade_manager.api.remedy import saving
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    NODES,
    UPGRADE_PLANS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from upgrade_manager.resources.restore_list import is_list_of
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "vm-live-migrate-detector"
OTHER: dict[str, Any] = {**FIXED, "name": "another"}


async def detect(world: ToolkitWorld, *, upgrade: bool = False, shutdown: bool = False, node: str = NODE) -> None:
    await world.run(COMMAND, plan=PLAN if upgrade else "", shutdown=shutdown, node=node)


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the printed names, without the log of the simulated controllers."""
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("default/")]


async def test_names_are_printed_and_nothing_is_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with vm_world(tmp_path, FIXED, FREE, OTHER, ELSEWHERE) as world:
        await detect(world)
        assert printed(capsys) == ["default/another", "default/fixed"]
        assert len(await nodes_of_vms(world)) == 4
        assert await recorded(world) is None
        assert await messages(world) == []


async def test_vms_are_recorded_and_not_stopped(tmp_path: Path) -> None:
    async with vm_world(tmp_path) as world:
        await detect(world, upgrade=True)
        await detect(world, upgrade=True, node="node-2")
        assert await recorded(world) == {"node-0": "default/fixed", "node-2": ""}
        found = await world.client.get(CONFIG_MAPS, f"{PLAN}-restore-vm", namespace=HARVESTER_SYSTEM)
        plan = await world.client.get(UPGRADE_PLANS, PLAN)
        assert is_list_of(found, plan)
        assert found["metadata"]["labels"] == {
            "management.harvesterhci.io/upgrade-plan": PLAN,
            "management.harvesterhci.io/upgrade-plan-uid": objects.uid(plan),
            "management.harvesterhci.io/upgrade-component": "node-upgrade",
        }
        assert "ownerReferences" not in found["metadata"]
        assert await strategy(world, "fixed") == "Always"
        assert len(await messages(world)) == 1


async def test_vms_are_stopped_without_a_plan(tmp_path: Path) -> None:
    async with vm_world(tmp_path) as world:
        await detect(world, shutdown=True)
        assert await nodes_of_vms(world) == {"free": "node-0", "elsewhere": "node-1"}
        assert await recorded(world) is None
        assert await messages(world) == []


async def test_vms_are_recorded_and_stopped(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, OTHER, ELSEWHERE) as world:
        await detect(world, upgrade=True, shutdown=True)
        assert await nodes_of_vms(world) == {"elsewhere": "node-1"}
        assert await recorded(world) == {"node-0": "default/another,default/fixed"}
        assert await messages(world, "VMShutdownCompleted") == [
            "Shutdown completed for 2 VM(s) on node node-0, success: 2, failed: 0"
        ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"status": {"conditions": [{"type": "Paused", "status": "True"}]}}, id="paused"),
        pytest.param({"metadata": {"labels": {"harvesterhci.io/upgrade": "hvst-upgrade-1"}}}, id="of-an-upgrade"),
    ],
)
async def test_vm_that_is_not_restored_is_stopped(tmp_path: Path, change: Object) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await set_instance(world, "fixed", change)
        await detect(world, upgrade=True, shutdown=True)
        assert await nodes_of_vms(world) == {}
        assert await recorded(world) == {"node-0": ""}


async def test_unknown_node_is_an_error(tmp_path: Path) -> None:
    async with vm_world(tmp_path, actors=False) as world:
        with pytest.raises(StepFailed, match=r"^find-vms: node nope not found$"):
            await detect(world, node="nope")


async def test_unknown_plan_stops_no_vm(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        with pytest.raises(StepFailed, match=r"^record-vms: UpgradePlan nope not found: "):
            await world.run(COMMAND, plan="nope", shutdown=True)
        assert await strategy(world, "fixed") == "Always"


async def test_list_of_another_plan_stops_no_vm(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        owner = {"apiVersion": "v1", "kind": "UpgradePlan", "name": PLAN, "uid": "of-an-earlier-plan"}
        metadata = {"name": f"{PLAN}-restore-vm", "namespace": HARVESTER_SYSTEM, "ownerReferences": [owner]}
        await world.client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"node-0": "default/old"}})
        cause = (
            "record-vms: ConfigMap harvester-system/demo-restore-vm belongs to UpgradePlan demo (uid "
            "of-an-earlier-plan), not to UpgradePlan demo; delete it to continue: kubectl delete configmap -n "
            "harvester-system demo-restore-vm"
        )
        with pytest.raises(StepFailed) as error:
            await detect(world, upgrade=True, shutdown=True)
        assert str(error.value) == cause
        assert await strategy(world, "fixed") == "Always"
        assert await messages(world, "RestoreVMConfigMapFailed") == [
            f"ConfigMap harvester-system/demo-restore-vm not written: {cause}"
        ]


async def test_vm_that_does_not_stop_is_named(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED, durations={"pod_stop": 1e6}) as world:
        with pytest.raises(StepFailed) as error:
            await detect(world, upgrade=True, shutdown=True)
        assert str(error.value) == (
            "stop-vms: 1 of 1 VMs on node node-0 did not stop in time: default/fixed (it is stopping. "
            "If its system does not shut down, force it: virtctl stop fixed -n default --force --grace-period=0)"
        )
        assert await messages(world, "VMShutdownFailed") == [f"Shutdown failed on node node-0: {error.value}"]
        assert await recorded(world) == {"node-0": "default/fixed"}


async def test_instance_without_a_vm_is_named(tmp_path: Path) -> None:
    async with vm_world(tmp_path, FIXED) as world:
        await set_instance(world, "fixed", {"metadata": {"ownerReferences": None}})
        await world.client.delete(VIRTUAL_MACHINES, "fixed", namespace="default")
        with pytest.raises(StepFailed) as error:
            await detect(world, shutdown=True)
        assert str(error.value) == (
            "stop-vms: 1 of 1 VMs on node node-0 did not stop in time: default/fixed (it has no VirtualMachine. "
            f"(1) Save the instance: {saving('kubectl get vmi -n default fixed -o yaml', 'vmi-default-fixed.yaml')} "
            "(2) Delete it: kubectl delete vmi -n default fixed)"
        )


async def test_refused_stop_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with vm_world(tmp_path, FIXED) as world:

        async def refuse(*_: Any, **__: Any) -> None:
            raise Forbidden("put fixed/stop: 403 Forbidden")

        monkeypatch.setattr(world.client, "raw", refuse)
        with pytest.raises(StepFailed, match=r"default/fixed \(put fixed/stop: 403 Forbidden\)$"):
            await detect(world, shutdown=True)


HOST_0 = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-0"]}]}
SECOND_CORDONED: dict[str, Object] = {"node-1": {"spec": {"unschedulable": True}}}
OTHERS_CORDONED = {**SECOND_CORDONED, "node-2": {"spec": {"unschedulable": True}}}
WITNESSES: dict[str, Object] = {
    name: {"metadata": {"labels": {WITNESS_LABEL: "true"}}} for name in ("node-1", "node-2")
}


@pytest.mark.servers
@pytest.mark.parametrize(
    ("spec", "devices", "changes", "found"),
    [
        pytest.param({}, {}, {}, False, id="no-constraint"),
        pytest.param({"nodeSelector": {"zone": "a"}}, {}, {}, True, id="node-selector"),
        pytest.param({"nodeSelector": {}}, {}, {}, True, id="empty-node-selector"),
        pytest.param({}, {"hostDevices": [GPU]}, {}, True, id="host-device"),
        pytest.param({}, {"hostDevices": []}, {}, True, id="empty-host-devices"),
        pytest.param({}, {"gpus": [GPU]}, {}, False, id="virtual-gpu"),
        pytest.param(affinity(HOST_0), {}, {}, True, id="affinity-to-its-node"),
        pytest.param({}, {}, SECOND_CORDONED, False, id="one-other-node"),
        pytest.param({}, {}, OTHERS_CORDONED, True, id="no-schedulable-node"),
        pytest.param({}, {}, WITNESSES, True, id="one-node-and-witnesses"),
    ],
)
async def test_rule_on_a_server(
    tmp_path: Path,
    simulate: Simulate,
    capsys: pytest.CaptureFixture[str],
    spec: Object,
    devices: Object,
    changes: dict[str, Object],
    found: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    async with vm_world(tmp_path, ELSEWHERE, actors=False, simulate=simulate) as world:
        one = instance(spec, on=NODE, **devices)
        one["metadata"]["labels"] = {"kubevirt.io/nodeName": NODE}
        # The garbage collector removes an instance whose owner does not exist.
        owner = await world.client.get(VIRTUAL_MACHINES, ELSEWHERE["name"], namespace="default")
        one["metadata"]["ownerReferences"] = [{**OWNER, "name": objects.name(owner), "uid": objects.uid(owner)}]
        await create(world.client, VIRTUAL_MACHINE_INSTANCES, one)
        for name, change in changes.items():
            await world.client.patch(NODES, name, MergePatch(change))
        await detect(world)
        assert printed(capsys) == (["default/db"] if found else [])
