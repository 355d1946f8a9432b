"""Whole upgrades of clusters and plans with the longest and oddest names that Kubernetes allows."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hack.cluster import scenario
from hack.simulation import Simulation
from tests.support.upgrade import BY_IMAGE, BY_VERSION, UpgradeRun, condition, phases_of
from upgrade_manager.api.keys import LABEL_PLAN
from upgrade_manager.api.phases import PHASE_VALUES, SUCCEEDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    SECRETS,
    SERVICES,
    SUC_PLANS,
    VIRTUAL_MACHINE_IMAGES,
)

if TYPE_CHECKING:
    from tests.support.simulate import Simulate

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
KINDS = (DEPLOYMENTS, SERVICES, JOBS, SUC_PLANS, SECRETS, VIRTUAL_MACHINE_IMAGES, CONFIG_MAPS)


async def upgraded(simulation: Simulation, name: str, spec: dict[str, Any]) -> UpgradeRun:
    """Let the plan succeed, in a healthy run without a trace left."""
    stage = await UpgradeRun.set_up(simulation, name=name)
    async with stage.life():
        await stage.create_plan(spec)
        assert await stage.until_ended() == SUCCEEDED
        await stage.settle()
    plan, client = await stage.plan(), simulation.client()
    assert phases_of(plan) == [*PHASE_VALUES, SUCCEEDED]
    assert condition(plan, "Degraded") == ("False", "ReconcileSuccess", "")
    assert {entry["state"] for entry in objects.status(plan)["nodeUpgradeStatuses"].values()} == {"ImageCleaned"}
    assert {event["type"] for event in await stage.events()} == {"Normal"}
    left = [obj for kind in KINDS for obj in (await client.list(kind)).items if LABEL_PLAN in objects.labels(obj)]
    assert left == []
    marks = [key for node in (await client.list(NODES)).items for key in objects.labels(node) if "plan.upgrade" in key]
    assert marks == []
    assert stage.ledger.conflicts == []
    return stage


@pytest.mark.rule("api: objects are found by shortened labels")
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.thin
async def test_upgrade_succeeds_for_any_plan_name(plan: str) -> None:
    async with Simulation("three-nodes", scale=0) as simulation:
        await upgraded(simulation, plan, BY_IMAGE)


@pytest.mark.parametrize(("prefix", "suffix"), NODE_NAMES.values(), ids=NODE_NAMES)
async def test_upgrade_succeeds_for_any_node_name(prefix: str, suffix: str) -> None:
    named = scenario.load("three-nodes").changed(nodes={"prefix": prefix, "suffix": suffix})
    assert len(named.nodes.names[0]) <= 63
    async with Simulation(named, scale=0) as simulation:
        stage = await upgraded(simulation, LONGEST, BY_VERSION)
        assert set(objects.status(await stage.plan())["nodeUpgradeStatuses"]) == set(named.nodes.names)


def long_list() -> str:
    """20,000 lines, as incompressible as image lists can be."""
    random = Random(1)
    lines = (f"docker.io/rancher/image:v1@sha256:{random.getrandbits(256):064x}" for _ in range(20_000))
    return "# of the previous release\r\n" + "\r\n".join(lines)


@pytest.mark.rule("pipeline: the list given to the nodes may exceed 128 KiB")
@pytest.mark.servers
async def test_longest_names_and_list(simulate: Simulate) -> None:
    prefix, suffix = NODE_NAMES["63 characters with dots"]
    old = "bundle/harvester/images-lists-archive/v1.7.1/image_list_all.txt"
    changes = {"nodes": {"prefix": prefix, "suffix": suffix}, "repository": {"files": {old: long_list()}}}
    async with simulate(scenario.load("three-nodes").changed(**changes)) as simulation:
        stage = await upgraded(simulation, LONGEST, BY_VERSION)
    assert len([name for path, name in stage.ledger.created if path.endswith("/secrets")]) == 2
