from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services, services_world
from tests.support.toolkit.toolkit import ToolkitWorld
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, PODS
from upgrade_manager.toolkit.charts.cluster_resources import FLEET_CLUSTERS
from upgrade_manager.toolkit.charts.fleet_agent import agent_outdated, fleet_not_ready, redeploy_agent

NAME = "Cluster fleet-local/local (fleet.cattle.io)"
LOGS = (
    "Show the log of Fleet's controller: "
    "kubectl logs -n cattle-fleet-system -l app=fleet-controller --tail=100 --prefix"
)
AGENT, AGENT_SYSTEM = "fleet-agent", "cattle-fleet-local-system"
CONTROLLER, CONTROLLER_SYSTEM = "fleet-controller", "cattle-fleet-system"


async def report(world: ToolkitWorld, **status: Any) -> None:
    patch = MergePatch({"status": status})
    await world.client.patch(FLEET_CLUSTERS, "local", patch, namespace="fleet-local", subresource="status")


async def cluster_of(world: ToolkitWorld) -> Object:
    return await world.client.get(FLEET_CLUSTERS, "local", namespace="fleet-local")


async def create_pod(world: ToolkitWorld, app: str, namespace: str, *, ready: bool = True) -> None:
    metadata = {"name": app, "namespace": namespace, "labels": {"app": app}}
    container = {"name": app, "image": "fleet"}
    await world.client.create(PODS, PODS.with_type_meta({"metadata": metadata, "spec": {"containers": [container]}}))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    patch = MergePatch({"status": status})
    await world.client.patch(PODS, app, patch, namespace=namespace, subresource="status")


async def roll_out(world: ToolkitWorld) -> None:
    found = await world.client.get(DEPLOYMENTS, AGENT, namespace=AGENT_SYSTEM)
    numbers = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 1)
    status = {"observedGeneration": objects.metadata(found)["generation"], **numbers}
    patch = MergePatch({"status": status})
    await world.client.patch(DEPLOYMENTS, AGENT, patch, namespace=AGENT_SYSTEM, subresource="status")


async def test_what_the_agent_lacks(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        none = f"no Pod of Deployment {CONTROLLER_SYSTEM}/{CONTROLLER} is ready"
        assert await agent_outdated(context) == none
        await create_pod(world, CONTROLLER, CONTROLLER_SYSTEM, ready=False)
        assert await agent_outdated(context) == none
        ready = MergePatch({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        await world.client.patch(PODS, CONTROLLER, ready, namespace=CONTROLLER_SYSTEM, subresource="status")
        assert "fleet-agent: its change is not observed yet" in await agent_outdated(context)
        await roll_out(world)
        old = f"the Pod of Deployment {AGENT_SYSTEM}/{AGENT} is older than Fleet's controller. {LOGS}"
        assert await agent_outdated(context) == old
        await create_pod(world, AGENT, AGENT_SYSTEM)
        assert await agent_outdated(context) == ""
        stale = {"type": "Imported", "status": "False", "lastUpdateTime": "2025-01-01T00:00:00Z", "message": "no CA."}
        await report(world, conditions=[stale])
        imported = f"{NAME} is not imported since Fleet's controller started: no CA. {LOGS}"
        assert await agent_outdated(context) == imported
        await report(world, conditions=[])
        assert await agent_outdated(context) == f"{NAME} is not imported since Fleet's controller started. {LOGS}"


async def test_redeployment_is_asked_for_once(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        await create_pod(world, CONTROLLER, CONTROLLER_SYSTEM)
        await report(world, agentDeployedGeneration=4)
        await world.client.patch(
            FLEET_CLUSTERS, "local", MergePatch({"spec": {"redeployAgentGeneration": 4}}), namespace="fleet-local"
        )
        # A killed command runs again.
        for _ in range(2):
            await redeploy_agent(context)
            assert objects.spec(await cluster_of(world))["redeployAgentGeneration"] == 5
        assert await agent_outdated(context) == f"{NAME}: Fleet has not redeployed its agent. {LOGS}"
        await world.client.delete(FLEET_CLUSTERS, "local", namespace="fleet-local")
        assert await agent_outdated(context) == f"{NAME} does not exist. {LOGS}"


async def test_readiness_of_fleets_cluster(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        assert await fleet_not_ready(world.context()) == ""
        await report(world, conditions=[{"type": "Ready", "status": "False", "message": "NotReady(1)"}])
        assert await fleet_not_ready(world.context()) == f"{NAME} is not ready: NotReady(1)"
        await world.client.delete(FLEET_CLUSTERS, "local", namespace="fleet-local")
        assert await fleet_not_ready(world.context()) == f"{NAME} is not ready: unknown"


@pytest.mark.parametrize("nodes", [1, 3])
async def test_new_agent_runs_before_harvesters_charts(tmp_path: Path, nodes: int) -> None:
    async with cluster_upgrade(tmp_path, services(nodes={"count": nodes})) as upgrade:
        old = objects.uid(await upgrade.world.client.get(DEPLOYMENTS, AGENT, namespace=AGENT_SYSTEM))
        await report(upgrade.world, conditions=[{"type": "Ready", "status": "False"}])
        await upgrade.run()
        assert objects.uid(await upgrade.world.client.get(DEPLOYMENTS, AGENT, namespace=AGENT_SYSTEM)) != old
        writes = upgrade.kills.writes
        (redeployed,) = [index for index, write in enumerate(writes) if "fleet.cattle.io" in write]
        assert all(index > redeployed for index, write in enumerate(writes) if "harvester-cluster-repo" in write)
