"""Longhorn's volumes for which a drain waits."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.volumes import claim_of, slim_engine, slim_volume, storage_nodes, volumes_at_risk

row = pytest.param
RUNNING: dict[str, Any] = {"currentState": "running", "replicaModeMap": {"a": "RW"}}


def volume(name: str = "v", robustness: object = "degraded", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {"robustness": robustness}}


def engine(of: str = "v", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"{of}-e", "labels": {"longhornvolume": of}}, "status": {**RUNNING, **status}}


@pytest.mark.parametrize(
    ("nodes", "found", "modes", "problem"),
    [
        row(3, volume(), "", "its robustness is degraded instead of healthy", id="degraded"),
        row(3, volume(robustness=None), "RW RW", "its robustness is unknown instead of healthy", id="unknown"),
        row(3, volume(robustness="healthy"), "", "", id="healthy"),
        row(2, volume(), "RW RW ERR", "", id="two writable of three"),
        row(2, volume(robustness="healthy"), "RW WO", "1 of 2 replicas are writable", id="one is rebuilt"),
        row(2, volume(numberOfReplicas=1), "RW", "", id="single replica"),
        row(1, volume(numberOfReplicas=3), "RW", "", id="one node"),
        row(0, volume(), "", "0 of 1 replicas are writable", id="no managed node"),
    ],
)
def test_problem_of_a_volume(nodes: int, found: dict[str, Any], modes: str, problem: str) -> None:
    replicas = {f"r-{number}": mode for number, mode in enumerate(modes.split())}
    at_risk = volumes_at_risk([found], [engine(replicaModeMap=replicas)], nodes=nodes)
    assert at_risk == ([(found, problem)] if problem else [])


def test_only_volumes_of_running_engines_count() -> None:
    volumes = [volume("b"), volume("a"), volume("c"), volume("d")]
    by_field = {**engine("other"), "spec": {"volumeName": "b"}}
    engines = [engine("a"), by_field, engine("c", currentState="stopped"), engine("absent")]
    assert [found["metadata"]["name"] for found, _ in volumes_at_risk(volumes, engines, nodes=3)] == ["a", "b"]


def test_each_engine_of_a_migrating_volume_counts() -> None:
    found = volumes_at_risk([volume()], [engine(replicaModeMap={"a": "RW", "b": "RW"}), engine()], nodes=2)
    assert [problem for _, problem in found] == ["1 of 2 replicas are writable"]


def test_witness_has_no_replicas() -> None:
    label = "node-role.harvesterhci.io/witness"
    nodes: list[dict[str, Any]] = [{"metadata": {"labels": {label: value}}} for value in ("true", "false")]
    assert storage_nodes([*nodes, {"metadata": {}}]) == 2


@pytest.mark.parametrize(
    ("claim", "named"),
    [({"namespace": "ns", "pvcName": "c"}, "ns/c"), ({"namespace": "ns"}, ""), (None, ""), ([], "")],
)
def test_claim_of_a_volume(claim: object, named: str) -> None:
    assert claim_of({"status": {"kubernetesStatus": claim}}) == named


def test_slim_objects_keep_what_the_rules_read() -> None:
    metadata = {"name": "v", "namespace": "ns", "resourceVersion": "1"}
    claim = {"namespace": "ns", "pvcName": "c"}
    unscheduled = {"type": "Scheduled", "status": "False"}
    full: dict[str, Any] = {
        "metadata": {**metadata, "managedFields": [{}], "labels": {"longhornvolume": "w"}},
        "spec": {"numberOfReplicas": 3, "diskSelector": ["fast"], "nodeSelector": [], "size": "1"},
        "status": {
            "robustness": "degraded",
            "actualSize": 1,
            "kubernetesStatus": {**claim, "workloadsStatus": [{}]},
            "conditions": [{"type": "Restore"}, unscheduled],
        },
    }
    status = {"robustness": "degraded", "kubernetesStatus": claim, "conditions": [unscheduled]}
    spec = {"numberOfReplicas": 3, "diskSelector": ["fast"]}
    assert slim_volume(full) == {"metadata": metadata, "spec": spec, "status": status}
    slim = slim_engine({**full, "status": {"currentState": "running", "replicaModeMap": {"a": "RW", "b": "ERR"}}})
    running = {"currentState": "running", "replicaModeMap": {"0": "ERR", "1": "RW"}}
    assert slim == {"metadata": metadata, "spec": {"volumeName": "w"}, "status": running}


@pytest.mark.parametrize("status", [None, [], {"conditions": [{"type": "Scheduled", "status": "True"}]}])
def test_slim_objects_of_odd_ones_are_readable(status: object) -> None:
    odd: dict[str, Any] = {"metadata": {"name": "v"}, "spec": None, "status": status}
    assert volumes_at_risk([slim_volume(odd)], [slim_engine(odd)], nodes=3) == []
    assert claim_of(slim_volume(odd)) == ""
    assert "conditions" not in slim_volume(odd)["status"]


def test_healthy_engines_share_their_modes() -> None:
    one, other = slim_engine(engine()), slim_engine(engine("w"))
    assert one["status"]["replicaModeMap"] is other["status"]["replicaModeMap"]
