"""Whole upgrades of clusters and plans with the longest and oddest names that Kubernetes allows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hack import scenario
from hack.simulation import Simulation
from tests.support.cluster.cluster_state import end_state
from tests.support.cluster.simulate import Simulate
from tests.support.managers.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, condition, node_states, started
from upgrade_manager.api.keys import LABEL_PLAN
from upgrade_manager.kube import objects

#: 253 characters, with a dot before, at and behind every place where a name is cut.
LONGEST = "v1.8.0-" + "a." * 123
LONGEST = LONGEST[:252].rstrip(".") + "z" * (253 - len(LONGEST[:252].rstrip(".")))
PLANS = {
    "one character": "u",
    "63 characters": "p" * 63,
    "200 characters": "p" * 55 + "-" + "q" * 144,
    "253 characters with dots": LONGEST,
}
#: Before and behind the number; a node's hostname is a label's value, so a node's name has 63 characters at most.
NODE_NAMES = {
    "one character": ("", ""),
    "63 characters": ("n" * 62, ""),
    "63 characters with dots": ("rack-", ".r" * 28 + "z"),
    "a shared first label": ("node.rack-", ""),
}
#: Each name of a plan and of nodes once, and each way to name the release twice.
PAIRS = [
    pytest.param(plan, node, spec, id=f"{plan}, {node}")
    for plan, node, spec in zip(PLANS, NODE_NAMES, (BY_IMAGE, BY_VERSION, BY_VERSION, BY_IMAGE), strict=True)
]


async def upgraded(simulation: Simulation, name: str, spec: dict[str, Any]) -> UpgradeRun:
    """Check that the plan succeeds without warnings, and that its objects are removed."""
    async with started(simulation, spec, name=name) as stage:
        plan = await stage.succeed()
    assert condition(plan, "Degraded") == ("False", "ReconcileSuccess", "")
    assert set(node_states(plan).values()) == {"ImageCleaned"}
    assert {event["type"] for event in await stage.events()} == {"Normal"}
    state = await end_state(simulation)
    assert [title for title, obj in state.items() if LABEL_PLAN in objects.labels(obj)] == []
    nodes = [obj for obj in state.values() if obj["kind"] == "Node"]
    assert [key for node in nodes for key in objects.labels(node) if "plan.upgrade" in key] == []
    assert stage.ledger.conflicts == []
    return stage


@pytest.mark.rule("api: objects are found by shortened labels")
@pytest.mark.parametrize(("plan", "node", "spec"), PAIRS)
@pytest.mark.full
async def test_upgrade_succeeds_for_any_name(plan: str, node: str, spec: dict[str, Any]) -> None:
    prefix, suffix = NODE_NAMES[node]
    named = scenario.load("three-nodes").changed(nodes={"prefix": prefix, "suffix": suffix})
    assert len(named.nodes.names[0]) <= 63
    async with Simulation(named, scale=0) as simulation:
        stage = await upgraded(simulation, PLANS[plan], spec)
        assert set(node_states(await stage.plan())) == set(named.nodes.names)


def long_list() -> str:
    """20,000 lines, as incompressible as image lists can be."""
    random = Random(1)
    lines = (f"docker.io/rancher/image:v1@sha256:{random.getrandbits(256):064x}" for _ in range(20_000))
    return "# of the previous release\r\n" + "\r\n".join(lines)


@pytest.mark.full
@pytest.mark.rule("pipeline: the list given to the nodes may exceed 128 KiB")
@pytest.mark.servers
async def test_longest_names_and_list(simulate: Simulate) -> None:
    prefix, suffix = NODE_NAMES["63 characters with dots"]
    old = "bundle/harvester/images-lists-archive/v1.7.1/image_list_all.txt"
    changes = {"nodes": {"prefix": prefix, "suffix": suffix}, "repository": {"files": {old: long_list()}}}
    async with simulate(scenario.load("three-nodes").changed(**changes)) as simulation:
        stage = await upgraded(simulation, LONGEST, BY_VERSION)
    assert len(stage.ledger.names("secrets")) == 2
