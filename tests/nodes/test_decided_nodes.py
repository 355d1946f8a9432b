from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from tests.nodes.test_node_view import KINDS, OWNER, TARGET, job, observed
from tests.support.cluster.nodes import OPTIONS, POST_DRAIN, PRE, PRE_DRAIN, machine, node, secret
from upgrade_manager.kube.store import REMEMBERED
from upgrade_manager.nodes import decided_nodes
from upgrade_manager.nodes.decided_nodes import DecidedNodes
from upgrade_manager.nodes.model import Decisions
from upgrade_manager.nodes.node_view import Observed, Shared

SHARED = Shared(TARGET, OWNER.uid, None, frozenset(), restore_vms=False)
READY = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"osImage": "Harvester v1.6.1"}}
NEW = {**READY, "nodeInfo": {"osImage": TARGET.release_os, "kubeletVersion": TARGET.release_kubernetes}}
PRELOADED, UPGRADED = {"state": "ImagePreloaded"}, {"state": "PostDrained", "drain": {"seen": 1, "acknowledged": 1}}
row = pytest.param


def versioned(obj: dict[str, Any], version: int, **more: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}, **more}


def cluster(count: int) -> Observed:
    """Return nodes that wait for Rancher, each with a Machine and a Secret."""
    return observed(
        nodes=[versioned(node(f"n{number}"), 1, status=READY) for number in range(count)],
        secrets=[versioned(secret(f"s{number}", f"m{number}"), 1) for number in range(count)],
        machines=[versioned(machine(f"m{number}", f"n{number}"), 1) for number in range(count)],
    )


def entries(count: int) -> dict[str, Any]:
    return {f"n{number}": PRELOADED for number in range(count)}


class Counted:
    """The nodes about which `DecidedNodes` decides."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        decide = decided_nodes._decide

        def counted(name: str, *args: Any) -> Any:
            self.names.append(name)
            return decide(name, *args)

        monkeypatch.setattr(decided_nodes, "_decide", counted)

    def take(self) -> list[str]:
        names, self.names = sorted(self.names), []
        return names


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


@pytest.mark.rule(
    "pipeline: decisions derive from the plan and observed objects, not from events seen earlier",
    "pipeline: node states derive from Jobs, Nodes and Secrets",
)
@pytest.mark.parametrize(
    ("kind", "obj", "changed"),
    [
        row("nodes", versioned(node("n1"), 9, status=NEW), ["n1"], id="the Node"),
        row("nodes", versioned(node("n7"), 9, status=READY), ["n7"], id="a Node that joins"),
        row("secrets", versioned(secret("s1", "m1", **{PRE_DRAIN: OPTIONS}), 9), ["n1"], id="its Secret"),
        row("secrets", versioned(secret("s1", "m2"), 9), ["n1", "n2"], id="its Secret, of another Machine now"),
        row("secrets", versioned(secret("s7", ""), 9), [], id="a Secret without a Machine"),
        row("machines", versioned(machine("m1", "n2"), 9), ["n1", "n2"], id="its Machine, of another node now"),
        row("machines", versioned(machine("m1"), 9), ["", "n1"], id="its Machine, without a node now"),
        row("machines", versioned(machine("m7", "n2"), 9), ["n2"], id="a second Machine"),
        row("jobs", versioned(job("n1", "pre-drain"), 9), ["n1"], id="its Job"),
        row("jobs", versioned(job("n7", "pre-drain"), 9), [], id="a Job of no node"),
    ],
)
async def test_only_nodes_of_changed_objects_are_decided_again(
    counted: Counted, kind: str, obj: dict[str, Any], changed: list[str]
) -> None:
    seen, nodes = cluster(3), DecidedNodes()
    await nodes.decide(entries(3), seen, SHARED)
    assert counted.take() == ["n0", "n1", "n2"]
    getattr(seen, kind).put(obj)
    decisions = await nodes.decide(entries(3), seen, SHARED)
    assert counted.take() == changed
    assert decisions == await DecidedNodes().decide(entries(3), seen, SHARED)


async def test_node_is_decided_again_if_its_named_machine_changes(counted: Counted) -> None:
    seen, nodes = cluster(2), DecidedNodes()
    seen.nodes.put(versioned(node("n1", annotations={"cluster.x-k8s.io/machine": "m7"}), 2, status=READY))
    await nodes.decide(entries(2), seen, SHARED)
    counted.take()
    seen.machines.put(versioned(machine("m7", "n1"), 3))
    ((view, _),) = (await nodes.decide(entries(2), seen, SHARED)).active
    assert counted.take() == ["n1"]
    assert view.machine_problem.endswith("names m7, whose machine-plan Secret is missing")


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        row({}, [], id="none"),
        row({"n1": UPGRADED}, ["n1"], id="another state"),
        row({"n1": dict(PRELOADED)}, [], id="an equal one, as after each write"),
        row({"n7": PRELOADED}, ["n7"], id="of a node that does not exist"),
    ],
)
async def test_only_nodes_of_changed_entries_are_decided_again(
    counted: Counted, change: dict[str, Any], changed: list[str]
) -> None:
    seen, nodes = cluster(2), DecidedNodes()
    await nodes.decide(entries(2), seen, SHARED)
    counted.take()
    decisions = await nodes.decide({**entries(2), **change}, seen, SHARED)
    assert counted.take() == changed
    assert decisions == await DecidedNodes().decide({**entries(2), **change}, seen, SHARED)


@pytest.mark.parametrize(
    "shared",
    [
        row(SHARED._replace(paused=frozenset({"n1"})), id="pauseNodes"),
        row(SHARED._replace(restore_vms=True), id="restoreVM"),
        row(SHARED._replace(plan_uid="other"), id="the plan"),
        row(SHARED._replace(single="n1"), id="the cluster's only node"),
        row(SHARED._replace(target=TARGET._replace(generation=7)), id="what Rancher upgrades to"),
    ],
)
async def test_all_nodes_are_decided_again_if_a_shared_input_changes(counted: Counted, shared: Shared) -> None:
    seen, nodes = cluster(2), DecidedNodes()
    await nodes.decide(entries(2), seen, SHARED)
    counted.take()
    assert await nodes.decide(entries(2), seen, shared) == await DecidedNodes().decide(entries(2), seen, shared)
    assert counted.take() == ["n0", "n0", "n1", "n1"]


async def test_all_nodes_are_decided_again_after_many_changes(counted: Counted) -> None:
    seen, nodes = cluster(2), DecidedNodes()
    await nodes.decide(entries(2), seen, SHARED)
    for version in range(REMEMBERED):
        seen.nodes.put(versioned(node("n1"), version + 2, status=READY))
    await nodes.decide(entries(2), seen, SHARED)
    await nodes.decide(entries(2), cluster(2), SHARED)
    assert counted.take() == ["n0"] * 3 + ["n1"] * 3


async def test_other_tasks_run_between_slices(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that changes meanwhile is decided about again."""
    monkeypatch.setattr(decided_nodes, "SLICE", 2)
    seen, nodes = cluster(5), DecidedNodes()
    deciding = asyncio.create_task(nodes.decide(entries(5), seen, SHARED))
    await asyncio.sleep(0)
    assert counted.take() == ["n0", "n1"]
    seen.nodes.put(versioned(node("n0"), 2, status=NEW, spec={"unschedulable": True}))
    decisions = await deciding
    assert counted.take() == ["n0", "n2", "n3", "n4"]
    assert decisions == await DecidedNodes().decide(entries(5), seen, SHARED)


async def test_cancelled_decision_is_continued(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_nodes, "SLICE", 1)
    seen, nodes = cluster(3), DecidedNodes()
    deciding = asyncio.create_task(nodes.decide(entries(3), seen, SHARED))
    await asyncio.sleep(0)
    deciding.cancel()
    await asyncio.gather(deciding, return_exceptions=True)
    assert counted.take() == ["n0"]
    assert len(await nodes.decide(entries(3), seen, SHARED)) == 3
    assert counted.take() == ["n1", "n2"]


async def test_decision_that_fails_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, nodes = cluster(1), DecidedNodes()
    await nodes.decide(entries(1), seen, SHARED)
    seen.nodes.put(versioned(node("n0"), 2, status=NEW))
    with monkeypatch.context() as broken:
        broken.setattr(decided_nodes, "decide", None)
        with pytest.raises(TypeError):
            await nodes.decide(entries(1), seen, SHARED)
    assert await nodes.decide(entries(1), seen, SHARED) == await DecidedNodes().decide(entries(1), seen, SHARED)


STATES: tuple[Mapping[str, Any], ...] = (
    PRELOADED,
    UPGRADED,
    {"state": "PreDraining"},
    {"state": "WaitingReboot", "drain": {"seen": 1, "acknowledged": 1, "rebooted": 1}},
    {"state": "PreDrained", "reason": "DrainFailing", "message": "it is slow"},
    {"state": "UpgradePaused"},
    {},
)
ANNOTATIONS: tuple[dict[str, str], ...] = (
    {},
    {PRE_DRAIN: OPTIONS},
    {PRE_DRAIN: OPTIONS, PRE: OPTIONS},
    {POST_DRAIN: OPTIONS},
    {"rke.cattle.io/drain-options": OPTIONS},
)


class Changes:
    """Random changes of a small cluster."""

    def __init__(self, seed: int) -> None:
        self.random, self.version = Random(seed), 1
        self.seen, self.entries, self.shared = observed(), dict[str, Any](), SHARED

    def _number(self) -> int:
        return self.random.randrange(4)

    def node(self) -> dict[str, Any]:
        named = {"cluster.x-k8s.io/machine": f"m{self._number()}"} if self.random.random() < 0.3 else {}
        spec = {"unschedulable": self.random.random() < 0.1}
        status = self.random.choice([READY, READY, NEW, NEW, NEW, {}])
        return versioned(node(f"n{self._number()}", annotations=named), self.version, spec=spec, status=status)

    def secret(self) -> dict[str, Any]:
        annotations = self.random.choice([{}, *ANNOTATIONS])
        machine_name = self.random.choice(["", "m0", "m1", "m2", "m3"])
        return versioned(secret(f"s{self._number()}", machine_name, **annotations), self.version)

    def machine(self) -> dict[str, Any]:
        applied = [{"type": "PlanApplied", "status": self.random.choice(["True", "True", "True", "False"])}]
        node_name = self.random.choice(["", "n0", "n1", "n2", "n3"])
        found = versioned(machine(f"m{self._number()}", node_name), self.version)
        return {**found, "status": {**found["status"], "conditions": applied}}

    def job(self) -> dict[str, Any]:
        conditions = [{"type": self.random.choice(["Complete", "Failed", "Suspended"]), "status": "True"}]
        kind = self.random.choice(["pre-drain", "post-drain", "restore-vm", "of no type"])
        return versioned(job(f"n{self._number()}", kind), self.version, status={"conditions": conditions})

    def change(self) -> None:
        """Change a few objects, entries of the status, or rarely what all nodes share."""
        for _ in range(self.random.randrange(4)):
            self.version += 1
            kind = self.random.choice(KINDS)
            make: Callable[[], dict[str, Any]] = getattr(self, kind.removesuffix("s"))
            store = getattr(self.seen, kind)
            (store.delete if self.random.random() < 0.3 else store.put)(make())
        if self.random.random() < 0.5:
            self.entries = {**self.entries, f"n{self._number()}": self.random.choice(STATES)}
        if self.random.random() < 0.1:
            self.shared = self.shared._replace(paused=frozenset({f"n{self._number()}"}))


@pytest.mark.rule("pipeline: decisions derive from the plan and observed objects, not from events seen earlier")
@pytest.mark.parametrize("seed", range(20))
async def test_decisions_are_those_of_a_new_process(seed: int) -> None:
    """The order of waiting and done nodes is not that of a new process; nothing depends on it."""
    changes, nodes = Changes(seed), DecidedNodes()
    for _ in range(200):
        changes.change()
        decisions = await nodes.decide(changes.entries, changes.seen, changes.shared)
        assert decisions == await DecidedNodes().decide(changes.entries, changes.seen, changes.shared)


async def test_random_changes_lead_to_nodes_of_each_kind() -> None:
    changes, nodes = Changes(seed=0), DecidedNodes()
    kinds: set[str] = set()
    for _ in range(200):
        changes.change()
        decisions = await nodes.decide(changes.entries, changes.seen, changes.shared)
        kinds.update(name for name in ("active", "waiting", "done") if getattr(decisions, name))
    assert kinds == {"active", "waiting", "done"}


async def test_earlier_decisions_do_not_change() -> None:
    seen, nodes = cluster(2), DecidedNodes()
    first = await nodes.decide(entries(2), seen, SHARED)
    seen.nodes.put(versioned(node("n1"), 2, status=NEW, spec={"unschedulable": True}))
    second = await nodes.decide(entries(2), seen, SHARED)
    assert ([*first.waiting], len(first)) == (["n0", "n1"], 2)
    assert ([*second.waiting], [view.name for view, _ in second.active]) == (["n0"], ["n1"])
    assert [view.name for view, _ in second.all()] == ["n0", "n1"]


async def test_no_nodes_are_decided() -> None:
    assert await DecidedNodes().decide({}, observed(), SHARED) == Decisions()
