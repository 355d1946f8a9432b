"""The node upgrade on the embedded server; the test changes Rancher's objects, Jobs and Nodes step by step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.harvester import RELEASE
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    ADDONS,
    JOBS,
    LONGHORN_SETTINGS,
    MACHINES,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    UPGRADE_PLANS,
)
from upgrade_manager.pipeline.phases.node_upgrade import NodeUpgrade

if TYPE_CHECKING:
    from tests.support.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult

PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
PRE_DRAIN, POST_DRAIN = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
PENDING = "management.harvesterhci.io/pendingOSImage"
OPTIONS = json.dumps({"preDrainHooks": [{"annotation": PRE}], "postDrainHooks": [{"annotation": POST}]})
PLACE = "harvester-system"
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


class NodeUpgradeRun:
    """A cluster in the phase; every reconcile uses a new context."""

    def __init__(self, cluster: Harvester) -> None:
        self.cluster = cluster
        self.phase = NodeUpgrade()

    async def set_up(self, *nodes: str) -> None:
        await self.cluster.nodes(*nodes)
        for node in nodes:
            await self.machine(node)
        place = {"namespace": "fleet-local", "name": "local"}
        spec = {"kubernetesVersion": "v1.32.4+rke2r1", "rkeConfig": {"provisionGeneration": 4}}
        await self.cluster.put(PROVISIONING_CLUSTERS, {"metadata": place, "spec": spec})
        await self.cluster.plan(status={"releaseMetadata": RELEASE, "currentPhase": "ClusterUpgraded"})

    async def machine(self, node: str) -> None:
        place = {"namespace": "fleet-local", "name": f"m-{node}"}
        status = {"nodeRef": {"kind": "Node", "apiVersion": "v1", "name": node}}
        spec = {"clusterName": "local", "bootstrap": {}, "infrastructureRef": {"name": "x", "kind": "x"}}
        await self.cluster.put(MACHINES, {"metadata": place, "spec": spec}, status=status)
        metadata = {
            "name": f"s-{node}",
            "namespace": "fleet-local",
            "labels": {"rke.cattle.io/machine-name": f"m-{node}"},
        }
        await self.cluster.put(SECRETS, {"metadata": metadata, "type": "rke.cattle.io/machine-plan", "data": {}})

    async def context(self) -> ReconcileContext:
        return self.cluster.context(await self.cluster.client.get(UPGRADE_PLANS, "up"))

    async def enter(self) -> None:
        ctx = await self.context()
        assert await self.phase.enter(ctx) is None
        ctx.status.record("NodeUpgrading")
        await ctx.persist()

    async def run(self, *, record: bool = True) -> PhaseResult:
        ctx = await self.context()
        outcome = await self.phase.run(ctx)
        if record:
            await ctx.persist()
        return outcome

    async def rancher(self, node: str, **annotations: str | None) -> None:
        named = {PRE_DRAIN if key == "pre" else POST_DRAIN: value for key, value in annotations.items()}
        patch = MergePatch({"metadata": {"annotations": named}})
        await self.cluster.client.patch(SECRETS, f"s-{node}", patch, namespace="fleet-local")

    async def acknowledgements(self, node: str) -> dict[str, str]:
        found = objects.annotations_of(await self.cluster.find(SECRETS, f"s-{node}", "fleet-local"))
        return {key: value for key, value in found.items() if key in {PRE, POST}}

    async def finish(self, node: str, step: str, status: dict[str, Any]) -> None:
        await self.cluster.finish(JOBS, f"up-node-upgrade-{step}-{node}", "harvester-system", status)

    async def reboot(self, node: str) -> None:
        status = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"osImage": RELEASE["os"]}}
        await self.cluster.finish(NODES, node, "", status)

    def warned(self) -> list[tuple[str, str]]:
        """Return reasons and names of the Warning events."""
        events = zip(self.cluster.recorder.recorded, self.cluster.recorder.names, strict=True)
        return [(reason, name) for (reason, _), name in events if reason != "PhaseTransition"]

    async def states(self) -> dict[str, str]:
        plan = await self.cluster.client.get(UPGRADE_PLANS, "up")
        return {node: entry["state"] for node, entry in plan["status"]["nodeUpgradeStatuses"].items()}

    async def of_others(self) -> list[Object]:
        """Return everything that the phase overrides."""
        kinds = (LONGHORN_SETTINGS, ADDONS, PROVISIONING_CLUSTERS)
        return [item for kind in kinds for item in (await self.cluster.client.list(kind)).items]

    async def generation(self) -> int:
        found = await self.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
        return int(found["spec"]["rkeConfig"]["provisionGeneration"])
