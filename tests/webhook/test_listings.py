"""The fields that listings keep of the objects that checks read, and their concurrent reads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, named, node
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MACHINES as MACHINE_RESOURCE
from upgrade_manager.kube.resources import NODES as NODE_RESOURCE
from webhook.cluster import Listing, NotInstalled
from webhook.listings import INSTANCES, MACHINES, NODES, VOLUMES, keep, read_all


def test_kept_fields_keep_their_place() -> None:
    obj = {"metadata": {"name": "x", "uid": "1"}, "spec": {"a": {"b": 0, "c": 1}, "d": None}, "status": {"e": {}}}
    assert keep("spec.a.b", "spec.d", "status.e.f")(obj) == {"metadata": {"name": "x"}, "spec": {"a": {"b": 0}}}
    assert keep("spec.a")(obj)["spec"] == {"a": {"b": 0, "c": 1}}


def test_kept_condition_is_the_one_of_that_type() -> None:
    ready = {"type": "Ready", "status": "True"}
    obj = named("x", status={"conditions": [{"type": "Other"}, ready], "more": 1})
    assert keep(condition="Ready")(obj) == named("x", status={"conditions": [ready]})
    assert keep(condition="Ready")({}) == {"status": {"conditions": [{}]}}


def test_healthy_volume_is_reduced_to_its_name() -> None:
    volume = named("v", "longhorn-system", spec={"numberOfReplicas": 3}, status={"robustness": "healthy"})
    assert VOLUMES.slim(volume) == named("v", "longhorn-system")


def test_unconstrained_instance_keeps_its_node_and_phase() -> None:
    status = {"nodeName": "n1", "phase": "Running"}
    instance = named("vm", "a", spec={"domain": {"devices": {"disks": []}}}, status={**status, "conditions": []})
    assert INSTANCES.slim(instance) == named("vm", "a", status=status)


def test_node_keeps_one_annotation() -> None:
    given = node("n1")
    given["metadata"]["annotations"]["rke2.io/node-args"] = "x" * 4096
    assert NODES.slim(given)["metadata"]["annotations"] == {"cluster.x-k8s.io/machine": "m-n1"}
    assert "annotations" not in NODES.slim(named("n1"))["metadata"]


class SlowReader:
    """Responds after a second."""

    async def list(self, listing: Listing) -> Sequence[Object]:
        await asyncio.sleep(1)
        return [named(listing.resource.plural)]


async def test_listings_are_read_concurrently() -> None:
    began = asyncio.get_running_loop().time()
    assert await read_all(SlowReader(), NODES, MACHINES) == [[named("nodes")], [named("machines")]]
    assert asyncio.get_running_loop().time() - began == 1


async def test_error_wins_over_a_missing_kind() -> None:
    missing = MemoryReader({}, missing=[MACHINE_RESOURCE])
    with pytest.raises(NotInstalled):
        await read_all(missing, NODES, MACHINES)
    broken = MemoryReader({}, missing=[MACHINE_RESOURCE], errors={NODE_RESOURCE: Transient("no response")})
    with pytest.raises(Transient):
        await read_all(broken, MACHINES, NODES)
