from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.cluster.machine_versions import NewMachines
from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services_world
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.toolkit.charts.capi_cluster import cluster_not_provisioned
from upgrade_manager.toolkit.charts.cluster_resources import CAPI_CLUSTERS
from upgrade_manager.toolkit.run.errors import StepFailed

NAME = "Cluster fleet-local/local (cluster.x-k8s.io)"
SHOW = "Show it: kubectl get clusters.cluster.x-k8s.io -n fleet-local local -o yaml"


async def report(client: Client, **status: Any) -> None:
    patch = MergePatch({"status": status})
    await client.patch(CAPI_CLUSTERS, "local", patch, namespace="fleet-local", subresource="status")


async def test_what_a_cluster_lacks(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        assert await cluster_not_provisioned(context) == ""
        await report(world.client, phase="Provisioning")
        assert (
            await cluster_not_provisioned(context) == f"{NAME} is in phase Provisioning instead of Provisioned. {SHOW}"
        )
        await report(world.client, phase=None)
        assert await cluster_not_provisioned(context) == f"{NAME} is in phase unknown instead of Provisioned. {SHOW}"
        await report(world.client, phase="Provisioned", observedGeneration=None)
        observed = f"{NAME}: its controller has observed generation None instead of 1. {SHOW}"
        assert await cluster_not_provisioned(context) == observed
        await world.client.patch(
            CAPI_CLUSTERS, "local", MergePatch({"spec": {"paused": True}}), namespace="fleet-local"
        )
        await report(world.client, observedGeneration=1)
        observed = f"{NAME}: its controller has observed generation 1 instead of 2. {SHOW}"
        assert await cluster_not_provisioned(context) == observed
        await world.client.delete(CAPI_CLUSTERS, "local", namespace="fleet-local")
        assert await cluster_not_provisioned(context) == f"{NAME} does not exist"


async def test_newer_version_is_read(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        client = Client(NewMachines(world.simulation.transport()), user_agent="toolkit", random=Random(1))
        assert await cluster_not_provisioned(world.context(client=client)) == ""


async def test_rancher_waits_for_the_cluster(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        await report(upgrade.world.client, phase="Provisioning")
        with pytest.raises(StepFailed, match=r"^settle-cluster-before-rancher: not done after 30 min: .*Provisioning"):
            await upgrade.run()
        assert not any("helm" in call and "upgrade" in call for call in upgrade.helm.calls)
