from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named, node
from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.facts.volumes import storage_nodes, ways_out
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import LONGHORN_VOLUMES, NODES
from webhook.checks.longhorn import CHECK

SKIP = "management.harvesterhci.io/skip-single-replica-detached-vol"
OF_CLAIM = "Volume longhorn-system/pvc-1 of PersistentVolumeClaim default/disk "
DEGRADED = "is not healthy: its robustness is degraded instead of healthy. Longhorn rebuilds its replicas once"
IN_USE = (
    "is {} and has a single replica, which is unavailable while its node reboots. (1) Add a replica: kubectl patch "
)
UNUSED = "is {} and has a single replica. Delete it if it is not needed, or accept"
CLAIM = {"namespace": "default", "pvcName": "disk"}


def volume(replicas: Any = 3, **status: Any) -> Object:
    status = {"robustness": "healthy", "kubernetesStatus": CLAIM, **status}
    return named("pvc-1", "longhorn-system", spec={"numberOfReplicas": replicas}, status=status)


def of_claim(claim: Any) -> Object:
    return volume(1, state="attached", kubernetesStatus=claim)


def nodes(count: int) -> list[Object]:
    return [node(f"n{index}") for index in range(count)]


LABELS: dict[str, Any] = {WITNESS_LABEL: "true"}
WITNESS = node("n9", **LABELS)
ATTACHED = volume(1, state="attached")
DEGRADED_VOLUME = volume(robustness="degraded")
NO_CLAIM = {"namespace": "", "pvcName": ""}
DETACHED = volume(1, state="detached", robustness="unknown")


@pytest.mark.rule(
    "admission: with three nodes or more no volume may be degraded",
    "admission: volumes in use need a second replica, if there is a second node",
)
@pytest.mark.parametrize(
    ("present", "volumes", "expected"),
    [
        pytest.param(3, [volume(state="attached"), volume(2, state="detached")], [], id="healthy"),
        pytest.param(3, [], [], id="no volumes"),
        pytest.param(3, [DEGRADED_VOLUME], [OF_CLAIM + DEGRADED], id="degraded"),
        pytest.param(2, [DEGRADED_VOLUME], [], id="degraded on two nodes"),
        pytest.param([*nodes(2), WITNESS], [DEGRADED_VOLUME], [OF_CLAIM + DEGRADED], id="degraded with a witness"),
        pytest.param([*nodes(1), WITNESS], [ATTACHED], [IN_USE.format("attached")], id="one node with a witness"),
        pytest.param(3, [ATTACHED], [OF_CLAIM + IN_USE.format("attached")], id="attached"),
        pytest.param(3, [volume(1, state="attaching")], [IN_USE.format("attaching")], id="attaching"),
        pytest.param(3, [volume(1, state="creating")], [IN_USE.format("creating")], id="creating"),
        pytest.param(3, [DETACHED], [OF_CLAIM + UNUSED.format("detached")], id="detached"),
        pytest.param(3, [volume(1, state="detaching")], [UNUSED.format("detaching")], id="detaching"),
        pytest.param(3, [volume(1, state="deleting")], [], id="deleting"),
        pytest.param(2, [ATTACHED, DETACHED], [IN_USE.format("attached"), UNUSED.format("detached")], id="two nodes"),
        pytest.param(1, [volume(1, state="attached", robustness="degraded"), DETACHED], [], id="one node"),
        pytest.param(3, [DEGRADED_VOLUME, ATTACHED], [DEGRADED, IN_USE.format("attached")], id="two volumes"),
        pytest.param(3, [of_claim(None)], ["Volume longhorn-system/pvc-1 " + IN_USE.format("attached")], id="no claim"),
        pytest.param(3, [of_claim(NO_CLAIM)], ["longhorn-system/pvc-1 " + IN_USE.format("attached")], id="empty claim"),
        pytest.param(3, [named("pvc-1", "longhorn-system")], [], id="no spec and status"),
        pytest.param(3, [volume(1) | {"status": None}], ["Volume longhorn-system/pvc-1 is detached"], id="null status"),
        pytest.param(3, [volume(replicas=True), volume("1"), volume(None)], [], id="replicas of wrong types"),
        pytest.param(3, [volume(1, state=["attached"])], [UNUSED.format("detached")], id="state of a wrong type"),
    ],
)
async def test_longhorn(present: int | list[Object], volumes: list[Object], expected: list[str]) -> None:
    listed = nodes(present) if isinstance(present, int) else present
    reader = MemoryReader({NODES: listed, LONGHORN_VOLUMES: volumes})
    assert_messages(await find(CHECK, reader), expected)


@pytest.mark.rule("admission: detached volumes need a second replica, unless an annotation accepts them")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("true", [IN_USE.format("attached")], id="true"),
        pytest.param("false", [IN_USE.format("attached"), UNUSED.format("detached")], id="false"),
        pytest.param("True", [IN_USE.format("attached"), UNUSED.format("detached")], id="capital"),
    ],
)
async def test_annotation_accepts_detached_volumes(value: str, expected: list[str]) -> None:
    reader = MemoryReader({NODES: nodes(3), LONGHORN_VOLUMES: [ATTACHED, DETACHED]})
    assert_messages(await find(CHECK, reader, annotations={SKIP: value}), expected)


FEWER = "Reduce its 3 replicas to 2, for which the cluster has nodes: kubectl patch volumes.longhorn.io "


@pytest.mark.rule("blockers: a degraded volume has one remedy for the webhook and the finder")
@pytest.mark.parametrize(
    ("more", "present", "remedy"),
    [
        pytest.param({}, [*nodes(2), WITNESS], FEWER, id="Longhorn has no node for it"),
        pytest.param({"nodeSelector": ["big"]}, nodes(3), "Add big to spec.tags on each node", id="tags"),
        pytest.param({}, nodes(3), "Make nodes schedulable, with space on their disks", id="three nodes"),
    ],
)
async def test_remedy_of_a_degraded_volume(more: dict[str, Any], present: list[Object], remedy: str) -> None:
    broken = {**DEGRADED_VOLUME, "spec": {"numberOfReplicas": 3, **more}}
    reader = MemoryReader({NODES: present, LONGHORN_VOLUMES: [broken]})
    (message,) = await find(CHECK, reader)
    assert remedy in message
    assert remedy_text(ways_out(broken, nodes=storage_nodes(present))) in message
