"""Which nodes the strategy of Rancher's cluster holds after the end of a plan."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.harvester import RELEASE, Harvester
from upgrade_manager.kube.resources import NODES, PROVISIONING_CLUSTERS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending.held_nodes import find_frozen
from upgrade_manager.pipeline.settings.upgrade_strategy import with_hooks

OLDER, NEWER = "v1.32.4+rke2r1", RELEASE["kubernetes"]


async def ended(harvester: Harvester, kubelets: dict[str, str], **status: Any) -> ReconcileContext:
    """Return a plan that has ended, and Rancher's cluster with the drain hooks."""
    rke = {"provisionGeneration": 5, "upgradeStrategy": with_hooks({})}
    metadata, spec = {"name": "local", "namespace": "fleet-local"}, {"kubernetesVersion": NEWER, "rkeConfig": rke}
    await harvester.put(PROVISIONING_CLUSTERS, {"metadata": metadata, "spec": spec})
    for name, version in kubelets.items():
        node = {"metadata": {"name": name, "labels": {"harvesterhci.io/managed": "true"}}}
        await harvester.put(NODES, node, status={"nodeInfo": {"kubeletVersion": version}})
    return harvester.context(await harvester.plan(status={"releaseMetadata": RELEASE, **status}))


async def test_older_nodes_of_an_earlier_plan_are_held_in_order(cluster: Harvester) -> None:
    ctx = await ended(cluster, dict.fromkeys(("n6", "n2", "n5", "n1", "n4", "n3"), OLDER) | {"n7": NEWER})
    frozen = await find_frozen(ctx)
    assert frozen is not None
    assert frozen.nodes == ["n1", "n2", "n3", "n4", "n5", "n6"]


@pytest.mark.rule("nodes: after a failure the hooks stay until every node runs the release's Kubernetes")
@pytest.mark.parametrize(
    ("state", "kubelet", "held"),
    [
        pytest.param("ImagePreloaded", OLDER, True, id="not drained"),
        pytest.param("PreDrained", NEWER, True, id="not drained, its Kubernetes is the release's"),
        pytest.param("PostDraining", OLDER, True, id="drained, its Kubernetes is older"),
        pytest.param("PostDraining", NEWER, False, id="its Kubernetes is upgraded"),
        pytest.param("PostDrained", OLDER, False, id="done"),
    ],
)
async def test_node_is_held_until_its_kubernetes_is_upgraded(
    cluster: Harvester, state: str, kubelet: str, *, held: bool
) -> None:
    entry = {"object": "Cluster fleet-local/local", "field": "spec.rkeConfig.upgradeStrategy", "original": {}}
    ctx = await ended(cluster, {"n1": kubelet}, originals=[entry], nodeUpgradeStatuses={"n1": {"state": state}})
    frozen = await find_frozen(ctx)
    assert (frozen.nodes if frozen else []) == (["n1"] if held else [])
