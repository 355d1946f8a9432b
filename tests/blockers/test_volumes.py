from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.volumes import FINDERS
from upgrade_manager.blockers.wait import EvacuationWait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker

row = pytest.param
CLAIM = {"namespace": "default", "pvcName": "disk-0"}
ENGINE = {"spec": {"volumeName": "v"}, "status": {"currentState": "running"}}
SKIP = "Or let the Job skip it, whose VM may fail, in a shell on node n1: touch /usr/local/harvester-upgrade/skip-v"
MANAGED = [{"metadata": {"name": name}} for name in ("n1", "n2", "n3")]


@pytest.fixture(autouse=True)
def cluster(view: FakeView) -> None:
    """Give the finder a cluster with three nodes, and the engine of a volume."""
    view.found["Node"], view.found["Engine"] = [*MANAGED], [ENGINE]


def blockers(view: FakeView, *, age: float = 600, running: bool = True, at_gate: bool = True) -> Sequence[Blocker]:
    """Return the blockers of a Job of that age."""
    since = view.ago(age)
    wait = EvacuationWait(name="n1", node="n1", since=since, released=since, is_running=running, is_at_gate=at_gate)
    return find_blockers(FINDERS, view, [wait], []).blockers


def volume(robustness: object, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "v", "namespace": "longhorn-system"},
        "status": {"robustness": robustness, **status},
    }


@pytest.mark.rule("blockers: a volume that lacks replicas is named while the pre-drain Job waits for it")
@pytest.mark.parametrize(
    ("found", "text"),
    [
        row(
            volume("degraded", kubernetesStatus=CLAIM),
            "its robustness is degraded instead of healthy; PersistentVolumeClaim default/disk-0",
            id="degraded",
        ),
        row(volume("faulted"), "its robustness is faulted instead of healthy", id="faulted, without claim"),
        row(volume("degraded", kubernetesStatus=[]), "its robustness is degraded instead of healthy", id="wrong types"),
    ],
)
def test_unhealthy_volume_of_the_node(view: FakeView, found: dict[str, Any], text: str) -> None:
    view.found["Volume"] = [found]
    (blocker,) = blockers(view)
    assert (blocker.reason, blocker.kind, blocker.namespace) == ("VolumeDegraded", "Volume", "longhorn-system")
    assert (blocker.name, blocker.node, blocker.since) == ("v", "n1", view.ago(600))
    assert blocker.message == f"Volume longhorn-system/v: the drain of node n1 waits for it ({text})"
    assert blocker.remedy == (
        "(1) Make nodes schedulable, with space on their disks: "
        "kubectl get nodes.longhorn.io -n longhorn-system -o wide "
        "(2) Show its replicas: kubectl get replicas.longhorn.io -n longhorn-system -l longhornvolume=v "
        f"(3) {SKIP}"
    )


@pytest.mark.rule("blockers: a volume with more replicas than storage nodes is to have fewer replicas")
def test_volume_with_more_replicas_than_nodes(view: FakeView) -> None:
    view.found["Volume"] = [{**volume("degraded"), "spec": {"numberOfReplicas": 4}}]
    (blocker,) = blockers(view)
    fewer = (
        """kubectl patch volumes.longhorn.io -n longhorn-system v --type=merge -p '{"spec":{"numberOfReplicas":3}}'"""
    )
    more = f"Undo it after the upgrade: {fewer}".replace(":3}", ":4}")
    assert (
        blocker.remedy
        == f"(1) Reduce its 4 replicas to 3, for which the cluster has nodes: {fewer} (2) {more} (3) {SKIP}"
    )


PATCH = "kubectl patch volumes.longhorn.io -n longhorn-system v --type=merge -p"
UNSCHEDULED = {"type": "Scheduled", "status": "False", "reason": "ReplicaSchedulingFailure"}


@pytest.mark.parametrize(
    ("spec", "conditions", "text", "give", "patch", "undo"),
    [
        row(
            {"diskSelector": ["fast", "ssd"]},
            [{**UNSCHEDULED, "message": "tags not fulfilled"}],
            "Longhorn places no replica: tags not fulfilled; diskSelector fast, ssd",
            "Add fast, ssd to spec.disks.*.tags",
            '{"diskSelector":null}',
            '{"diskSelector":["fast","ssd"]}',
            id="disks",
        ),
        row(
            {"nodeSelector": ["big"], "diskSelector": ["fast"]},
            [{**UNSCHEDULED, "message": ""}],
            "Longhorn places no replica: ReplicaSchedulingFailure; diskSelector fast; nodeSelector big",
            "Add fast to spec.disks.*.tags and big to spec.tags",
            '{"diskSelector":null,"nodeSelector":null}',
            '{"diskSelector":["fast"],"nodeSelector":["big"]}',
            id="disks and nodes",
        ),
        row(
            {"nodeSelector": ["big", 1], "diskSelector": "x"},
            [{"type": "Scheduled", "status": "True"}],
            "nodeSelector big",
            "Add big to spec.tags",
            '{"nodeSelector":null}',
            '{"nodeSelector":["big",1]}',
            id="nodes, wrong types",
        ),
    ],
)
def test_volume_whose_replica_has_no_place(
    view: FakeView, spec: dict[str, Any], conditions: list[Any], text: str, give: str, patch: str, undo: str
) -> None:
    found = {**volume("degraded", conditions=conditions), "spec": spec}
    view.found["Volume"] = [found]
    (blocker,) = blockers(view)
    assert blocker.message.endswith(f"(its robustness is degraded instead of healthy; {text})")
    assert blocker.remedy == (
        f"(1) {give} on each node that is to have a replica: kubectl edit nodes.longhorn.io -n longhorn-system "
        "(2) Or remove the tags from the volume until the upgrade has ended: "
        f"""{PATCH} '{{"spec":{patch}}}' (3) Undo it after the upgrade: {PATCH} '{{"spec":{undo}}}' (4) {SKIP}"""
    )


def test_volume_that_longhorn_places_nowhere_without_a_reason(view: FakeView) -> None:
    found = volume("faulted", conditions=[{"type": "Scheduled", "status": "False"}])
    view.found["Volume"] = [found]
    (blocker,) = blockers(view)
    reported = "Longhorn places no replica: Scheduled is False"
    assert f"(its robustness is faulted instead of healthy; {reported})" in blocker.message


@pytest.mark.parametrize(
    ("age", "volumes", "engine", "reads"),
    [
        row(599, [volume("degraded")], ENGINE, 0, id="not overdue"),
        row(600, [volume("healthy")], ENGINE, 3, id="healthy"),
        row(600, [], ENGINE, 3, id="an engine without a volume"),
        row(600, [volume("degraded")], {**ENGINE, "status": {"currentState": "stopped"}}, 3, id="a stopped engine"),
        row(600, [volume("degraded")], {"spec": None, "status": 1}, 3, id="wrong types"),
    ],
)
def test_volumes_that_are_no_blocker(
    view: FakeView, age: float, volumes: list[Any], engine: dict[str, Any], reads: int
) -> None:
    view.found["Volume"], view.found["Engine"] = volumes, [engine]
    assert blockers(view, age=age) == []
    assert len(view.read) == reads


def test_writable_replicas_count_on_two_nodes(view: FakeView) -> None:
    view.found["Node"], view.found["Volume"] = MANAGED[:2], [volume("degraded")]
    (blocker,) = blockers(view)
    assert "(0 of 2 replicas are writable)" in blocker.message
    modes = {"a": "RW", "b": "RW", "c": "ERR"}
    view.found["Engine"] = [{**ENGINE, "status": {"currentState": "running", "replicaModeMap": modes}}]
    assert blockers(view) == []


def test_volumes_do_not_matter_after_the_pre_drain_job(view: FakeView) -> None:
    view.found["Volume"] = [volume("degraded")]
    assert blockers(view, running=False) == []
    assert view.read == []


def test_volumes_do_not_matter_once_vms_may_leave(view: FakeView) -> None:
    view.found["Volume"] = [volume("degraded")]
    assert blockers(view, age=6000, at_gate=False) == []
    assert view.read == []
    assert len(blockers(view, age=6000)) == 1


def test_managed_nodes_engines_and_volumes_are_watched(view: FakeView) -> None:
    blockers(view)
    assert [(one.resource.plural, one.namespace, one.label_selector) for one in view.read] == [
        ("nodes", "", "harvesterhci.io/managed=true"),
        ("engines", "longhorn-system", ""),
        ("volumes", "longhorn-system", ""),
    ]
