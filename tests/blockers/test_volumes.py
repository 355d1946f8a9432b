from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.volumes import FINDERS
from upgrade_manager.blockers.wait import Wait, WaitKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker

row = pytest.param
CLAIM = {"namespace": "default", "pvcName": "disk-0"}
ON_NODE = {"spec": {"volumeName": "v"}}


def blockers(view: FakeView, *, age: float = 600, running: bool = True) -> Sequence[Blocker]:
    since = view.ago(age)
    wait = Wait(
        kind=WaitKind.EVACUATION, namespace="", name="n1", node="n1", since=since, progressed=since, is_running=running
    )
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
            "it is degraded, with a replica on node n1 (PersistentVolumeClaim default/disk-0)",
            id="degraded",
        ),
        row(volume("faulted"), "it is faulted, with a replica on node n1", id="faulted, without claim"),
        row(volume("degraded", kubernetesStatus=[]), "it is degraded, with a replica on node n1", id="wrong types"),
    ],
)
def test_unhealthy_volume_of_the_node(view: FakeView, found: dict[str, Any], text: str) -> None:
    view.found["Volume"], view.found["Replica"] = [found], [ON_NODE]
    (blocker,) = blockers(view)
    assert (blocker.reason, blocker.kind, blocker.namespace) == ("VolumeDegraded", "Volume", "longhorn-system")
    assert (blocker.name, blocker.node, blocker.since) == ("v", "n1", view.ago(600))
    assert blocker.message == f"Volume longhorn-system/v: {text}"
    assert blocker.remedy == (
        "(1) Make nodes schedulable, with space on their disks: "
        "kubectl get nodes.longhorn.io -n longhorn-system -o wide "
        "(2) Show its replicas: kubectl get replicas.longhorn.io -n longhorn-system -l longhornvolume=v"
    )


UNSCHEDULED = {"type": "Scheduled", "status": "False", "reason": "ReplicaSchedulingFailure"}


@pytest.mark.parametrize(
    ("spec", "conditions", "text", "give", "patch"),
    [
        row(
            {"diskSelector": ["fast", "ssd"]},
            [{**UNSCHEDULED, "message": "tags not fulfilled"}],
            "Longhorn places no replica: tags not fulfilled; diskSelector fast, ssd",
            "Add fast, ssd to spec.disks.*.tags",
            '{"diskSelector":null}',
            id="disks",
        ),
        row(
            {"nodeSelector": ["big"], "diskSelector": ["fast"]},
            [{**UNSCHEDULED, "message": ""}],
            "Longhorn places no replica: ReplicaSchedulingFailure; diskSelector fast; nodeSelector big",
            "Add fast to spec.disks.*.tags and big to spec.tags",
            '{"diskSelector":null,"nodeSelector":null}',
            id="disks and nodes",
        ),
        row(
            {"nodeSelector": ["big", 1], "diskSelector": "x"},
            [{"type": "Scheduled", "status": "True"}],
            "nodeSelector big",
            "Add big to spec.tags",
            '{"nodeSelector":null}',
            id="nodes, wrong types",
        ),
    ],
)
def test_volume_whose_replica_has_no_place(
    view: FakeView, spec: dict[str, Any], conditions: list[Any], text: str, give: str, patch: str
) -> None:
    found = {**volume("degraded", conditions=conditions), "spec": spec}
    view.found["Volume"], view.found["Replica"] = [found], [ON_NODE]
    (blocker,) = blockers(view)
    assert blocker.message.endswith(f"with a replica on node n1 ({text})")
    assert blocker.remedy == (
        f"(1) {give} on each node that is to have a replica: kubectl edit nodes.longhorn.io -n longhorn-system "
        "(2) Or let all fit until the upgrade ends: "
        "kubectl patch volumes.longhorn.io -n longhorn-system v --type=merge "
        f"""-p '{{"spec":{patch}}}'"""
    )


def test_volume_that_longhorn_places_nowhere_without_a_reason(view: FakeView) -> None:
    found = volume("faulted", conditions=[{"type": "Scheduled", "status": "False"}])
    view.found["Volume"], view.found["Replica"] = [found], [ON_NODE]
    (blocker,) = blockers(view)
    assert "(Longhorn places no replica: Scheduled is False)" in blocker.message


@pytest.mark.parametrize(
    ("age", "volumes", "replicas", "kinds"),
    [
        row(599, [volume("degraded")], [ON_NODE], [], id="not overdue"),
        row(600, [volume("healthy"), volume("unknown"), volume(None)], [ON_NODE], ["Replica", "Volume"], id="healthy"),
        row(600, [volume("degraded")], [], ["Replica"], id="no replica"),
        row(600, [volume("degraded")], [{"spec": None}, {}], ["Replica"], id="wrong types"),
    ],
)
def test_volumes_that_are_no_blocker(
    view: FakeView,
    age: float,
    volumes: list[Any],
    replicas: list[Any],
    kinds: list[str],
) -> None:
    view.found["Volume"], view.found["Replica"] = volumes, replicas
    assert blockers(view, age=age) == []
    assert [one.resource.kind for one in view.read] == kinds


def test_volumes_do_not_matter_after_the_pre_drain_job(view: FakeView) -> None:
    view.found["Volume"], view.found["Replica"] = [volume("degraded")], [ON_NODE]
    assert blockers(view, running=False) == []
    assert view.read == []


def test_replicas_of_the_node_and_their_volumes_are_watched(view: FakeView) -> None:
    view.found["Replica"] = [ON_NODE, {"spec": {"volumeName": "a"}}, ON_NODE]
    blockers(view)
    assert [(one.namespace, one.label_selector) for one in view.read] == [
        ("longhorn-system", "longhornnode=n1"),
        ("longhorn-system", "longhornvolume in (a,v)"),
    ]
