from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.nodes import OPTIONS, PRE, PRE_DRAIN, secret
from upgrade_manager.facts.machine_plan import is_draining, is_under_way, post_drain_hook, pre_drain_hook
from upgrade_manager.pipeline.transforms import (
    slim_deployment,
    slim_endpoint_slice,
    slim_job,
    slim_machine,
    slim_machine_plan,
    slim_node,
    slim_pod,
)


def test_slim_node_keeps_what_decisions_read() -> None:
    node = {
        "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}, "managedFields": [1]},
        "spec": {"podCIDR": "x", "unschedulable": True},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
                {"type": "DiskPressure", "status": "False"},
            ],
            "nodeInfo": {"osImage": "Harvester v1.6.1", "bootID": "x"},
            "addresses": [
                {"type": "Hostname", "address": "n1"},
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": "fd00::1"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [{"names": ["a"]}] * 50,
        },
    }
    slim = slim_node(node)
    assert slim["metadata"] == {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    # The heartbeat of an unchanged node is not a change.
    assert slim["status"]["conditions"] == [{"type": "Ready", "status": "True"}]
    assert slim["status"]["nodeInfo"]["osImage"] == "Harvester v1.6.1"
    assert slim["status"]["addresses"] == [{"type": "InternalIP", "address": "10.0.0.1"}]
    assert slim["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert "images" not in slim["status"]
    assert slim["spec"] == {"unschedulable": True}


def test_slim_node_keeps_the_managers_annotation() -> None:
    own = {"management.harvesterhci.io/pendingOSImage": "Harvester v1.8.0"}
    slim = slim_node(
        {"metadata": {"name": "n1", "annotations": {"node.longhorn.io/default-disks-config": "[]", **own}}}
    )
    assert slim["metadata"] == {"name": "n1", "annotations": own}


@pytest.mark.parametrize("key", ["kubevirt.io/drain", "node.kubernetes.io/unschedulable"])
def test_slim_node_keeps_taints_with_the_pre_drain_jobs(key: str) -> None:
    taints = [{"key": "example.com/other", "effect": "NoSchedule"}, {"key": key, "effect": "NoSchedule"}]
    slim = slim_node({"metadata": {"name": "n1"}, "spec": {"taints": taints}})
    assert slim["spec"].get("taints") == (taints if key == "kubevirt.io/drain" else None)


@pytest.mark.parametrize(
    "status",
    [{}, {"status": None}, {"status": dict.fromkeys(("conditions", "nodeInfo", "addresses", "daemonEndpoints"))}],
    ids=["none", "null", "nulls"],
)
def test_slim_node_accepts_missing_fields(status: dict[str, Any]) -> None:
    slim = slim_node({"metadata": {"name": "n1"}, "spec": None, **status})
    assert (slim["status"]["conditions"], slim["spec"]) == ([], {"unschedulable": False})


def test_slim_job_keeps_what_decisions_read() -> None:
    metadata: dict[str, Any] = {"name": "j", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]}
    step = {"management.harvesterhci.io/progress": "1/2 wait"}
    job = {
        "metadata": metadata | {"managedFields": [1], "annotations": {**step, "other": "x"}},
        "spec": {"parallelism": 0, "suspend": True, "template": {"spec": {}}},
        "status": {"failed": 1, "conditions": [], "startTime": "x"},
    }
    slim = slim_job(job)
    assert slim["metadata"] == metadata | {"annotations": step}
    assert slim["spec"] == {"parallelism": 0, "suspend": True}
    assert slim["status"] == {"failed": 1, "conditions": [], "startTime": "x"}
    assert slim_job({"metadata": {"name": "j"}})["spec"] == {"parallelism": 1, "suspend": False}
    assert slim_job({"metadata": {"name": "j"}, "spec": {"backoffLimit": 2}})["spec"]["backoffLimit"] == 2


@pytest.mark.parametrize(
    ("component", "kept"),
    [
        ("cluster-upgrade", {"active", "ready", "startTime"}),
        ("node-upgrade", {"ready", "startTime"}),
        ("image-preload", {"ready", "startTime"}),
    ],
)
def test_slim_job_keeps_whether_a_pod_runs(component: str, kept: set[str]) -> None:
    labels = {"management.harvesterhci.io/upgrade-component": component}
    status = {"active": 1, "ready": 1, "startTime": "x", "terminating": 0}
    assert slim_job({"metadata": {"name": "j", "labels": labels}, "status": status})["status"].keys() == kept


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ({"terminated": {"exitCode": 0, "message": "{}"}}, {"terminated": {"exitCode": 0, "message": "{}"}}),
        ({"waiting": {"reason": "ErrImagePull"}}, {"waiting": {"reason": "ErrImagePull"}}),
        ({"running": {"startedAt": "x"}}, {}),
        (None, {}),
    ],
    ids=["ended", "waits", "runs", "null"],
)
def test_slim_pod_keeps_reports_and_missing_images(state: Any, kept: dict[str, Any]) -> None:
    metadata: dict[str, Any] = {"name": "p", "namespace": "x", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]}
    pod = {
        "metadata": metadata | {"managedFields": [1], "annotations": {"a": "b"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
        "status": {
            "phase": "Pending",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready"}],
            "containerStatuses": [{"name": "c", "image": "i", "ready": True, "state": state}],
        },
    }
    containers = [{"name": "c", "image": "i", "state": kept}]
    assert slim_pod(pod) == {
        "metadata": metadata,
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Pending", "containerStatuses": containers},
    }
    assert slim_pod({"metadata": {}, "spec": None, "status": {"containerStatuses": None}})["status"]["phase"] == ""


def test_slim_machine_keeps_what_decisions_read() -> None:
    metadata = {"name": "m", "namespace": "fleet-local", "uid": "u", "finalizers": ["machine.cluster.x-k8s.io"]}
    applied = {"type": "PlanApplied", "status": "False", "message": "it fails"}
    status = {"phase": "Running", "nodeRef": {"name": "n1"}, "conditions": [applied]}
    others = {"conditions": [applied, {"type": "Reconciled", "message": "waiting"}], "nodeInfo": {"osImage": "x"}}
    machine = {"metadata": {**metadata, "labels": {"a": "b"}, "managedFields": [1]}, "status": {**status, **others}}
    assert slim_machine(machine) == {"metadata": metadata, "status": status}


@pytest.mark.parametrize(
    "status", [{}, {"status": None}, {"status": {"nodeRef": None, "conditions": None}}], ids=["none", "null", "nulls"]
)
def test_slim_machine_accepts_missing_fields(status: dict[str, Any]) -> None:
    slim = slim_machine({"metadata": {"name": "m"}, **status})
    assert slim["status"] == {"phase": "", "nodeRef": {"name": ""}, "conditions": []}


HOOK = "example.com/backup"
FOREIGN = OPTIONS.replace(PRE, HOOK)


@pytest.mark.parametrize("options", ["", "{", OPTIONS, FOREIGN], ids=["none", "invalid", "own hooks", "foreign hook"])
@pytest.mark.parametrize("acknowledged", ["", OPTIONS, FOREIGN], ids=["none", "own", "foreign"])
def test_slim_machine_plan_keeps_what_drains_read(options: str, acknowledged: str) -> None:
    drain = {PRE_DRAIN: options, "rke.cattle.io/drain-options": options, PRE: acknowledged, HOOK: acknowledged}
    given = {key: value for key, value in drain.items() if value}
    probes = {"rke.cattle.io/plan-probes-passed": "2026-11-29T00:00:00Z"}
    full = secret("s1", "m1", **given, **probes)
    slim = slim_machine_plan({**full, "metadata": {**full["metadata"], "managedFields": [1]}})
    for read in (pre_drain_hook, post_drain_hook, is_draining, is_under_way):
        assert read(slim) == read(full)
    kept = slim["metadata"]["annotations"].keys()
    assert kept == given.keys() - ({HOOK} if options != FOREIGN else set())
    assert {**slim["metadata"], "annotations": 0} == {**full["metadata"], "annotations": 0}


def test_slim_machine_plan_accepts_a_secret_without_annotations() -> None:
    assert slim_machine_plan({"metadata": {"name": "s"}}) == {"metadata": {"name": "s", "annotations": {}}}


@pytest.mark.parametrize(
    ("endpoints", "kept"),
    [
        ([{"addresses": ["10.0.0.1"], "conditions": {"ready": True, "serving": True}}], [{"ready": True}]),
        ([{"conditions": {"ready": False, "terminating": True}}, {"addresses": ["10.0.0.2"]}], [{"ready": False}, {}]),
        (None, []),
    ],
    ids=["ready", "not ready, unknown", "null"],
)
def test_slim_endpoint_slice_keeps_which_are_ready(endpoints: Any, kept: list[dict[str, Any]]) -> None:
    metadata = {"name": "e", "namespace": "x", "ownerReferences": [{"uid": "u", "controller": True}]}
    slim = slim_endpoint_slice({"metadata": metadata | {"generation": 2, "managedFields": [1]}, "endpoints": endpoints})
    assert slim == {"metadata": metadata, "endpoints": [{"conditions": one} for one in kept]}


def test_slim_deployment_keeps_what_decisions_read() -> None:
    metadata = {"name": "d", "namespace": "x", "uid": "u", "creationTimestamp": "t"}
    available = {"type": "Available", "status": "False", "lastTransitionTime": "t"}
    deployment = {
        "metadata": metadata | {"managedFields": [1], "annotations": {"deployment.kubernetes.io/revision": "1"}},
        "spec": {"replicas": 2},
        "status": {
            "availableReplicas": 1,
            "updatedReplicas": 2,
            "conditions": [{"type": "Progressing", "status": "True"}, available | {"lastUpdateTime": "t"}],
        },
    }
    assert slim_deployment(deployment) == {
        "metadata": metadata,
        "spec": {"replicas": 2},
        "status": {"availableReplicas": 1, "conditions": [available]},
    }
    assert slim_deployment({"metadata": metadata})["status"] == {"conditions": []}
