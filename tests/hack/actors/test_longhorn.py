"""Longhorn: the disks on which failed replicas are rebuilt."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hack.actors.kinds import LONGHORN_NODES
from hack.actors.longhorn_disks import refusal
from hack.scenario import load
from hack.simulation import Simulation
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES


def node(*tags: str, disks: dict[str, Any] | None = None, **spec: Any) -> objects.Object:
    disk = {"allowScheduling": True, "tags": ["hdd"]}
    return {"spec": {"allowScheduling": True, "tags": list(tags), "disks": disks or {"a": disk}} | spec}


@pytest.mark.parametrize(
    ("spec", "place", "reason"),
    [
        pytest.param({}, node(), "", id="no selector"),
        pytest.param({"diskSelector": ["hdd"]}, node(), "", id="tagged disk"),
        pytest.param({"diskSelector": ["hdd", "nvme"]}, node(), "tags not fulfilled", id="disk without a tag"),
        pytest.param({"nodeSelector": ["fast"]}, node("fast"), "", id="tagged node"),
        pytest.param({"nodeSelector": ["fast"]}, node(), "disks are unavailable", id="node without the tag"),
        pytest.param({}, node(allowScheduling=False), "disks are unavailable", id="node not schedulable"),
        pytest.param(
            {}, node(disks={"a": {"allowScheduling": False}}), "disks are unavailable", id="disk not schedulable"
        ),
        pytest.param({}, None, "disks are unavailable", id="no node"),
    ],
)
def test_node_takes_a_replica_by_its_tags(spec: dict[str, Any], place: objects.Object | None, reason: str) -> None:
    assert refusal({"spec": spec}, place) == reason


async def test_replica_is_rebuilt_when_a_disk_is_tagged() -> None:
    machine = {"name": "vm", "node": "node-0"}
    scenario = load("three-nodes").changed(operators=True, vms={"count": 0, "machines": [machine]})
    async with Simulation(scenario) as simulation:
        client = simulation.client()

        async def read() -> objects.Object:
            (volume,) = (await client.list(LONGHORN_VOLUMES)).items
            return volume

        async def has(robustness: str) -> bool:
            return objects.text(await read(), "status", "robustness") == robustness

        assert objects.text(objects.condition(await read(), "Scheduled"), "status") == "True"
        selector = MergePatch({"spec": {"diskSelector": ["nvme"]}})
        await client.patch(LONGHORN_VOLUMES, objects.name(await read()), selector, namespace=LONGHORN_SYSTEM)
        simulation.hosts.power_off("node-1")
        await eventually(lambda: has("degraded"))
        # Longhorn waits for the node before it looks for another place.
        assert objects.text(objects.condition(await read(), "Scheduled"), "status") == "True"
        simulation.hosts.power_on("node-1")
        await asyncio.sleep(60)
        scheduled = objects.condition(await read(), "Scheduled")
        assert objects.text(scheduled, "reason") == "ReplicaSchedulingFailure"
        assert objects.text(scheduled, "message") == "precheck new replica failed: tags not fulfilled"
        assert await has("degraded")
        tags = MergePatch({"spec": {"disks": {"default-disk": {"tags": ["nvme"]}}}})
        await client.patch(LONGHORN_NODES, "node-1", tags, namespace=LONGHORN_SYSTEM)
        await eventually(lambda: has("healthy"))
        assert objects.text(objects.condition(await read(), "Scheduled"), "status") == "True"
        (engine,) = (await client.list(LONGHORN_ENGINES)).items
        assert set(objects.status(engine)["replicaModeMap"].values()) == {"RW"}
