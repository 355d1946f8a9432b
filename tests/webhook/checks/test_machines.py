from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named, set_status
from tests.support.cluster.machine_versions import NewMachines
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES
from webhook.checks.machines import CHECK
from webhook.cluster import LiveReader

FAILED = "Machine fleet-local/m1 is in phase Failed, not Running. Wait until it is Running, or repair it: "
UPDATING = "is in phase Updating, not Running"
NO_PHASE = "Machine fleet-local/m1 is not Running: it has no phase yet. "


DELETING = (
    "Machine fleet-local/m1 is not Running: it is being deleted, and its finalizer machine.cluster.x-k8s.io holds it. "
    "(1) Find out why the controller of machine.cluster.x-k8s.io does not end its work, and repair it (2) Show it: "
)
COLLECTED = "Machine fleet-local/m1 is not Running: it is being deleted. (1) Check the garbage collector: kubectl "


def machine(status: Any, namespace: str = "fleet-local") -> Object:
    return named("m1", namespace, status=status)


def deleting(*finalizers: str, phase: str) -> Object:
    """Return a Machine that these finalizers hold."""
    found = machine({"phase": phase})
    found["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[*finalizers])
    return found


@pytest.mark.rule("admission: every Machine in fleet-local must be Running")
@pytest.mark.parametrize(
    ("machines", "expected"),
    [
        pytest.param([machine({"phase": "Running"})], [], id="running"),
        pytest.param([], [], id="none"),
        pytest.param([machine({"phase": "Failed"}, "default")], [], id="another namespace"),
        pytest.param([machine({"phase": "Failed"}), machine({"phase": "Updating"})], [FAILED, UPDATING], id="others"),
        pytest.param([deleting("machine.cluster.x-k8s.io", phase="Deleting")], [DELETING], id="held"),
        pytest.param([deleting("machine.cluster.x-k8s.io", phase="Running")], [DELETING], id="held, still Running"),
        pytest.param([deleting(phase="Deleting")], [COLLECTED], id="being deleted"),
        pytest.param([machine({})], [NO_PHASE], id="no phase"),
        pytest.param([machine(None)], [NO_PHASE], id="no status"),
        pytest.param([machine({"phase": ["Running"]})], [NO_PHASE], id="a list"),
    ],
)
async def test_machines(machines: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({MACHINES: machines})), expected)


async def test_machines_are_read_in_the_version_that_is_served() -> None:
    async with Simulation(actors=False) as simulation:
        client = Client(NewMachines(simulation.transport()), user_agent="test", random=Random(0))
        assert await find(CHECK, LiveReader(client)) == []
        name = (await simulation.client().list(MACHINES)).items[0]["metadata"]["name"]
        await set_status(simulation.client(), MACHINES, name, "fleet-local", phase="Failed")
        assert_messages(await find(CHECK, LiveReader(client)), [f"Machine fleet-local/{name} is in phase Failed"])
