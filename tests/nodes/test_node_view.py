from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.cluster.nodes import OPTIONS, POST_DRAIN, PRE_DRAIN, machine, node, secret, store_of
from upgrade_manager.api.keys import WITNESS_LABEL, JobType
from upgrade_manager.api.names import label_value
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.nodes.decided_nodes import DecidedNodes
from upgrade_manager.nodes.model import NO_REQUESTS, Decided
from upgrade_manager.nodes.node_view import Observed, Shared, Target, finished_seconds
from upgrade_manager.pipeline.status import StatusPatch
from upgrade_manager.resources.owner import Owner

TARGET = Target("Harvester v1.7.0", "v1.33.5+rke2r1", frozenset())
OWNER = Owner(name="upgrade", uid="u")
SPEC = UpgradePlanSpec.read({"version": "v1.7.0"})
KINDS = ("nodes", "secrets", "machines", "jobs")


def recorded(**states: str) -> StatusPatch:
    """Return the status of a plan with these node states."""
    status = {"nodeUpgradeStatuses": {name: {"state": state} for name, state in states.items()}}
    return StatusPatch({"metadata": {}, "status": status}, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))


STATUS = recorded(n1="PreDraining", n9="Polishing")
REQUESTED = secret("s2", "m2", **{PRE_DRAIN: OPTIONS})


def job(node_name: str, kind: str) -> dict[str, Any]:
    labels = {"management.harvesterhci.io/node": label_value(node_name), "management.harvesterhci.io/job-type": kind}
    owners = [{"uid": OWNER.uid, "controller": True}]
    return {"metadata": {"name": f"{kind}-{node_name}", "labels": labels, "ownerReferences": owners}}


def observed(**given: Any) -> Observed:
    return Observed(**{kind: store_of(given.get(kind, [])) for kind in KINDS})


def decided(
    seen: Observed, status: StatusPatch = STATUS, *, spec: UpgradePlanSpec = SPEC, target: Target = TARGET
) -> list[Decided]:
    shared = Shared(target, OWNER.uid, None, frozenset(spec.node_upgrade_option.pause_nodes), spec.restore_vm)
    return asyncio.run(DecidedNodes().decide(status.nodes, seen, shared)).all()


def views(**given: Any) -> dict[str, Any]:
    return {view.name: view for view, _ in decided(observed(**given))}


@pytest.mark.rule(
    "nodes: a Secret belongs to a node by its label machine-name and the Machine's nodeRef",
    "pipeline: node states derive from Jobs, Nodes and Secrets",
)
def test_objects_of_a_node_are_joined() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [ready], "nodeInfo": {"osImage": "Harvester v1.6.1"}}
    pending_os = {"management.harvesterhci.io/pendingOSImage": "Harvester v1.7.0"}
    seen = views(
        nodes=[{**node("n1", annotations=pending_os), "status": status}],
        secrets=[secret("s1", "m1", **{PRE_DRAIN: OPTIONS})],
        machines=[machine("m1", "n1")],
        jobs=[job("n1", "pre-drain"), job("n2", "pre-drain")],
    )["n1"]
    assert (seen.state, seen.os_image, seen.ready) == (NodeState.PRE_DRAINING, "Harvester v1.6.1", True)
    assert seen.ready_since == "2026-01-01T00:00:00Z"
    assert (seen.pending_os, seen.secret, seen.pre_drain.pending) == ("Harvester v1.7.0", "s1", True)
    assert {kind: state.progress for kind, state in seen.jobs.items()} == {JobType.PRE_DRAIN: Progress.RUNNING}


@pytest.mark.rule(
    "nodes: a Secret without Machine is logged and not fatal",
    "nodes: a node that joins is logged, blocks nothing and is upgraded when its hook is pending",
)
@pytest.mark.parametrize(
    ("given", "names"),
    [
        pytest.param({"nodes": [node("n1"), node("n2")]}, ["n1"], id="a node that joined later takes no part"),
        pytest.param({"nodes": []}, [], id="nor one that has left"),
        pytest.param({"nodes": [node("n9")]}, ["n9"], id="a state of a newer version counts"),
        pytest.param(
            {"nodes": [node("n2")], "secrets": [REQUESTED], "machines": [machine("m2", "n2")]},
            ["n2"],
            id="a node that joined takes part with a pending hook",
        ),
        pytest.param({"nodes": [node("n2")], "secrets": [REQUESTED]}, [], id="a Secret without a Machine is ignored"),
    ],
)
def test_nodes_that_take_part(given: dict[str, Any], names: list[str]) -> None:
    assert list(views(**given)) == names


@pytest.mark.rule("nodes: without restoreVM there is no restore-vm Job", "nodes: a witness gets no restore-vm Job")
@pytest.mark.parametrize(
    ("spec", "labels", "paused", "restores"),
    [
        pytest.param({}, {}, False, False, id="no options"),
        pytest.param({"nodeUpgradeOption": {"pauseNodes": ["n1", "n7"]}}, {}, True, False, id="it is listed"),
        pytest.param({"nodeUpgradeOption": {"pauseNodes": ["n7"]}}, {}, False, False, id="another one is"),
        pytest.param({"nodeUpgradeOption": {"pauseNodes": ["N1"]}}, {}, False, False, id="it is misspelt"),
        pytest.param({"restoreVM": True}, {}, False, True, id="VMs are to be started again"),
        pytest.param({"restoreVM": True}, {WITNESS_LABEL: ""}, False, False, id="on a witness there are none"),
    ],
)
def test_plan_options_of_a_node(spec: dict[str, Any], labels: dict[str, str], *, paused: bool, restores: bool) -> None:
    seen = observed(nodes=[node("n1", labels=labels)])
    ((view, _),) = decided(seen, spec=UpgradePlanSpec.read(spec))
    assert (view.paused, view.restore_vms) == (paused, restores)


def test_ambiguous_machine_is_named_on_the_node() -> None:
    secrets = [secret("s1", "m1", **{PRE_DRAIN: OPTIONS}), secret("s2", "m2")]
    seen = views(nodes=[node("n1")], secrets=secrets, machines=[machine("m1", "n1"), machine("m2", "n1")])["n1"]
    assert seen.machine_problem.startswith("it names the same node as m2, and the Node's annotation")
    show = "kubectl get machines.cluster.x-k8s.io -n fleet-local"
    annotate = "kubectl annotate --overwrite node n1 cluster.x-k8s.io/machine"
    assert [*map(str, seen.machine_ways_out)] == [
        f"Show the Machines and their nodes: {show}",
        f"If its Machine is m1, name it on the Node: {annotate}=m1",
        f"If its Machine is m2, name it on the Node: {annotate}=m2",
    ]


def test_bare_objects_are_read() -> None:
    seen = views(nodes=[node("n1")])["n1"]
    assert (seen.os_image, seen.ready, seen.pending_os, seen.secret, seen.jobs) == ("", False, "", "", {})
    assert not seen.pre_drain.pending
    assert seen.ready_since == ""


@pytest.mark.parametrize(
    ("spec", "cordoned", "tainted"),
    [
        pytest.param({}, False, False, id="neither"),
        pytest.param({"unschedulable": True, "taints": []}, True, False, id="cordoned"),
        pytest.param({"taints": [{"key": "node.kubernetes.io/unschedulable"}]}, False, True, id="tainted"),
    ],
)
def test_cordon_and_taints_are_read(spec: dict[str, Any], *, cordoned: bool, tainted: bool) -> None:
    seen = views(nodes=[{**node("n1"), "spec": spec}])["n1"]
    assert (seen.cordoned, seen.tainted) == (cordoned, tainted)


@pytest.mark.parametrize("kind", ["polish", ""])
def test_jobs_of_other_types_are_ignored(kind: str) -> None:
    assert views(nodes=[node("n1")], jobs=[job("n1", kind), {"metadata": {"name": "x"}}])["n1"].jobs == {}


@pytest.mark.rule("api: objects are found by shortened labels")
def test_job_of_a_long_named_node_is_found() -> None:
    name = "n" * 200
    seen = observed(nodes=[node(name)], jobs=[job(name, "pre-drain")])
    ((view, _),) = decided(seen, recorded(**{name: "PreDraining"}))
    assert JobType.PRE_DRAIN in view.jobs


def test_jobs_of_other_plans_are_ignored() -> None:
    foreign = job("n1", "pre-drain")
    foreign["metadata"]["ownerReferences"] = [{"uid": "namesake", "controller": True}]
    assert views(nodes=[node("n1")], jobs=[foreign])["n1"].jobs == {}


def test_durations_are_those_of_the_plans_complete_jobs() -> None:
    def ended(name: str, second: str, *, condition: str = "Complete", uid: str = OWNER.uid) -> dict[str, Any]:
        found = job(name, "pre-drain")
        found["metadata"]["ownerReferences"][0]["uid"] = uid
        end = {"type": condition, "status": "True", "lastTransitionTime": f"2026-01-01T00:00:{second}Z"}
        return {**found, "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": [end]}}

    jobs = [ended("n1", "20"), ended("n2", "30"), ended("n3", "40", condition="Failed"), ended("n4", "50", uid="x")]
    found = finished_seconds(store_of([*jobs, {"metadata": {"name": "x"}}]), OWNER.uid)
    assert found == {JobType.PRE_DRAIN: [20.0, 30.0]}


@pytest.mark.rule("nodes: of two Secrets for a node the one with a pending hook is used, and logged")
@pytest.mark.parametrize("first", ["m1", "m2"])
def test_secret_with_a_pending_hook_is_used(first: str) -> None:
    second = {"m1": "m2", "m2": "m1"}[first]
    seen = views(
        nodes=[node("n1")],
        secrets=[secret("s1", first), secret("s2", second, **{PRE_DRAIN: OPTIONS})],
        machines=[machine("m1", "n1"), machine("m2", "n1")],
    )["n1"]
    assert (seen.secret, seen.pre_drain.pending) == ("s2", True)


@pytest.mark.parametrize(
    ("kubelet", "left", "expected"),
    [
        pytest.param("v1.32.4+rke2r1", frozenset({"s1"}), (True, True, 1), id="outdated, with a stale hook"),
        pytest.param("v1.33.5+rke2r1", frozenset({"s2"}), (False, False, 1), id="up to date, with a new one"),
    ],
)
def test_outdated_kubernetes_and_stale_hooks_are_recognized(
    kubelet: str, left: frozenset[str], expected: tuple[bool, bool, int]
) -> None:
    one = secret("s1", "m1", **{POST_DRAIN: OPTIONS})
    one["metadata"]["labels"]["rke.cattle.io/etcd-role"] = "true"
    status = {"nodeInfo": {"kubeletVersion": kubelet}}
    seen = observed(nodes=[{**node("n1"), "status": status}], secrets=[one], machines=[machine("m1", "n1")])
    ((view, _),) = decided(seen, target=TARGET._replace(stale=left))
    assert (view.kubernetes_outdated, view.stale_hook, view.tier) == expected


@pytest.mark.parametrize("drain", [None, {}, [], "damaged"])
def test_nodes_without_requests_share_one_record(drain: object) -> None:
    """Every reconcile reads the record of each of a thousand nodes."""
    status = {"nodeUpgradeStatuses": {"n1": {"state": "ImagePreloaded", "drain": drain}, "n2": {"state": "Ready"}}}
    patch = StatusPatch({"metadata": {}, "status": status}, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    assert {id(patch.node_requests(name)) for name in ("n1", "n2", "n3")} == {id(NO_REQUESTS)}
