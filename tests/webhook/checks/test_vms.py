from __future__ import annotations

import json

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named, node
from tests.support.cluster.instances import GPU, WITNESS, affinity, instance, zone
from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.api.keys import ANNOTATION_POST_HOOK as POST
from upgrade_manager.api.keys import MACHINE_PLAN_SECRET_TYPE, RKE_MACHINE_NAME
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES, NODES, SECRETS, VIRTUAL_MACHINE_INSTANCES
from webhook.check import Subject
from webhook.checks.vms import CHECK

CANNOT = "VirtualMachine default/db cannot be live-migrated: {}. (1) Set spec.restoreVM to true, "
SELECTOR = CANNOT.format("it has a node selector")
DEVICES = CANNOT.format("it uses host devices")
NO_NODE = CANNOT.format("no other node is schedulable")
NO_MATCH = CANNOT.format("no other schedulable node matches its node affinity")
TWO = [node("n1", zone="a"), node("n2", zone="b")]
CORDONED = [TWO[0], node("n2", zone="b", cordoned=True), node("n3", zone="a")]


def zonal(*, on: str = "n1") -> Object:
    return instance(affinity(zone("b")), on=on)


@pytest.mark.rule("admission: VMs must be able to live-migrate, if there is a second node for VMs")
@pytest.mark.parametrize(
    ("nodes", "instances", "expected"),
    [
        pytest.param(TWO, [instance()], [], id="no constraint"),
        pytest.param(TWO, [], [], id="no instance"),
        pytest.param(TWO, [instance({"nodeSelector": {}})], [SELECTOR], id="node selector"),
        pytest.param(TWO, [instance(hostDevices=[GPU])], [DEVICES], id="host device"),
        pytest.param(TWO, [zonal()], [], id="affinity to another node"),
        pytest.param(TWO, [zonal(on=name) for name in ("n1", "n2", "n1")], [NO_MATCH], id="equal affinity on both"),
        pytest.param(CORDONED, [zonal(), instance()], [NO_MATCH], id="matching node is cordoned"),
        pytest.param([TWO[0], node("n2", cordoned=True)], [instance()], [NO_NODE], id="other node is cordoned"),
        pytest.param([TWO[0], node("n2", **WITNESS)], [instance(hostDevices=[GPU])], [], id="one node and a witness"),
        pytest.param([TWO[0]], [instance(hostDevices=[GPU])], [], id="one node"),
        pytest.param([], [instance(hostDevices=[GPU])], [], id="no node"),
        pytest.param(TWO, [instance(hostDevices=[GPU], phase="Succeeded")], [], id="succeeded"),
        pytest.param(TWO, [instance(hostDevices=[GPU], phase="Failed")], [], id="failed"),
        pytest.param(TWO, [instance(hostDevices=[GPU], phase="Pending")], [DEVICES], id="pending"),
        pytest.param(TWO, [named("db", "default", spec=[], status="Running")], [], id="wrong types"),
    ],
)
async def test_vms(nodes: list[Object], instances: list[Object], expected: list[str]) -> None:
    reader = MemoryReader({NODES: nodes, VIRTUAL_MACHINE_INSTANCES: instances})
    assert_messages(await find(CHECK, reader), expected)


HELD = {
    SECRETS: [
        named(
            "s",
            "fleet-local",
            type=MACHINE_PLAN_SECRET_TYPE,
            labels={RKE_MACHINE_NAME: "m-n2"},
            annotations={"rke.cattle.io/post-drain": json.dumps({"postDrainHooks": [{"annotation": POST}]})},
        )
    ],
    MACHINES: [named("m-n2", "fleet-local", status={"nodeRef": {"name": "n2"}})],
}
WAITING = (
    "An earlier upgrade keeps n2 cordoned, and VMs default/db have no other node. This plan finishes that first, and "
    "then migrates them"
)


@pytest.mark.rule("admission: VMs whose only obstacle is a node that an earlier upgrade holds are a warning")
@pytest.mark.parametrize(
    ("instances", "findings"),
    [
        pytest.param([instance()], [(WAITING, False)], id="no other node"),
        pytest.param([], [], id="no instance"),
        pytest.param([instance(on="n2")], [], id="on the held node"),
        pytest.param([instance(hostDevices=[GPU])], [(DEVICES, True)], id="another obstacle"),
    ],
)
async def test_vms_that_wait_for_a_held_node_are_named(
    instances: list[Object], findings: list[tuple[str, bool]]
) -> None:
    nodes = [TWO[0], node("n2", cordoned=True)]
    reader = MemoryReader({NODES: nodes, VIRTUAL_MACHINE_INSTANCES: instances, **HELD})
    found = await CHECK.find(Subject.of({"spec": {}}, cluster=reader, toolkit=TOOLKIT))
    assert [(one.message[: len(text)], one.denies) for one, (text, _) in zip(found, findings, strict=True)] == findings


@pytest.mark.rule("admission: VMs that cannot live-migrate are accepted with restoreVM")
async def test_restore_vm_accepts_vms_that_are_shut_down() -> None:
    reader = MemoryReader({NODES: TWO, VIRTUAL_MACHINE_INSTANCES: [instance(hostDevices=[GPU])]})
    assert await find(CHECK, reader, restoreVM=True) == []
