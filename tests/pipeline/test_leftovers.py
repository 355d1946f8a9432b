"""Marks that an earlier Plan of the same name has left on the nodes: the controller takes a node with them for done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.actors import suc_plan
from tests.support.upgrade import started
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS, NODES

if TYPE_CHECKING:
    from tests.support.simulate import Simulate

PLANS = ("upgrade-image-preload", "upgrade-image-cleanup")


@pytest.mark.rule("workloads: labels of an earlier Plan of the same name are removed before a Plan is created")
@pytest.mark.servers
async def test_labels_of_an_earlier_plan_skip_no_node(simulate: Simulate) -> None:
    """They are the very marks that this upgrade's Plans will set: same name, version and account."""
    spec = {"version": "v1.8.0", "serviceAccountName": "system-upgrade-controller"}
    mark = suc_plan.hash_of({"spec": spec}, "v1.8.0")
    async with simulate("three-nodes") as simulation:
        client = simulation.client()
        nodes = [objects.name(node) for node in (await client.list(NODES)).items]
        labels = {f"plan.upgrade.cattle.io/{plan}": mark for plan in PLANS}
        for node in nodes:
            await client.patch(NODES, node, MergePatch({"metadata": {"labels": labels}}))
        async with started(simulation) as stage:
            await stage.succeed()
        events = (await client.list(EVENTS)).items
        left = [key for node in (await client.list(NODES)).items for key in objects.labels(node)]
    found = {(event["involvedObject"]["name"], event["reason"], event.get("message", "")) for event in events}
    for plan in PLANS:
        done = {f"Job completed on Node {node}" for node in nodes}
        assert done <= {message for name, reason, message in found if (name, reason) == (plan, "JobComplete")}
        synced = [message for name, reason, message in found if (name, reason) == (plan, "SyncJob")]
        assert synced
        assert all(message.endswith(f"Hash: {mark}") for message in synced), "the marks were not those of these Plans"
    assert not any(key.startswith("plan.upgrade.cattle.io/") for key in left)
