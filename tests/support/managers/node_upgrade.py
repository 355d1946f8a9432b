"""The node upgrade on the embedded server; the test changes Rancher's objects, Jobs and Nodes step by step."""

from __future__ import annotations

from typing import Any

from tests.support.cluster.harvester import RELEASE, Harvester
from tests.support.cluster.nodes import OPTIONS, POST, POST_DRAIN, PRE, PRE_DRAIN
from tests.support.managers.announcements import REASONS
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    ADDONS,
    JOBS,
    LONGHORN_SETTINGS,
    NODES,
    PROVISIONING_CLUSTERS,
    SECRETS,
    UPGRADE_PLANS,
)
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.node_upgrade.phase import NodeUpgrade
from upgrade_manager.pipeline.outcome import PhaseResult, Waiting

PENDING = "management.harvesterhci.io/pendingOSImage"
PLACE = "harvester-system"
INTERVAL = "replica-replenishment-wait-interval"
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


def entry_of(status: Any, node: str) -> Object:
    """Return the node's entry without the time of its state."""
    return {key: value for key, value in status["nodeUpgradeStatuses"][node].items() if key != "since"}


class NodeUpgradeRun:
    """A cluster in the phase; every reconcile uses a new context."""

    def __init__(self, cluster: Harvester) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.phase = NodeUpgrade()

    async def set_up(self, *nodes: str) -> None:
        await self.cluster.nodes(*nodes)
        for node in nodes:
            await self.machine(node)
        place = {"namespace": "fleet-local", "name": "local"}
        spec = {"kubernetesVersion": "v1.32.4+rke2r1", "rkeConfig": {"provisionGeneration": 4}}
        await self.cluster.put(PROVISIONING_CLUSTERS, {"metadata": place, "spec": spec})
        # As Initialize records it.
        single = {"singleNode": nodes[0]} if len(nodes) == 1 else {}
        await self.cluster.plan(status={"releaseMetadata": RELEASE, "currentPhase": "ClusterUpgraded", **single})

    async def machine(self, node: str, *, machine: str = "") -> None:
        """Create a Machine of the node with its machine-plan Secret; `machine` is its name, m-NODE by default."""
        await self.cluster.machine(node, name=machine)
        labels = {"rke.cattle.io/machine-name": machine or f"m-{node}"}
        metadata = {"name": f"s-{machine or node}", "namespace": "fleet-local", "labels": labels}
        await self.cluster.put(SECRETS, {"metadata": metadata, "type": "rke.cattle.io/machine-plan", "data": {}})

    async def context(self) -> ReconcileContext:
        return self.cluster.context(await self.plan())

    async def plan(self) -> Object:
        return await self.client.get(UPGRADE_PLANS, "up")

    async def status(self) -> Any:
        return (await self.plan())["status"]

    async def enter(self) -> None:
        ctx = await self.context()
        assert await self.phase.enter(ctx) is None
        ctx.status.record("NodeUpgrading")
        await ctx.persist()

    async def begin(self, *nodes: str) -> None:
        """Set up these nodes, enter the phase and reconcile once."""
        await self.set_up(*nodes)
        await self.enter()
        await self.run()

    async def run(self, *, record: bool = True) -> PhaseResult:
        ctx = await self.context()
        outcome = await self.phase.run(ctx)
        assert not isinstance(outcome, Waiting) or outcome.waits, outcome
        if record:
            await ctx.persist()
        return outcome

    async def waiting(self) -> str:
        """Reconcile, and return what the phase waits for."""
        outcome = await self.run()
        assert isinstance(outcome, Waiting)
        return outcome.message

    async def move(self, **states: str) -> None:
        """Record states of nodes; a node that is done runs the release's OS."""
        ctx = await self.context()
        for node, state in states.items():
            ctx.status.move_node(node, NodeState(state))
            if NodeState(state).upgraded:
                await self.reboot(node)
        await ctx.persist()

    async def patch_secret(self, node: str, patch: Object) -> None:
        await self.client.patch(SECRETS, f"s-{node}", MergePatch(patch), namespace="fleet-local")

    async def rancher(self, node: str, *, machine: str = "", **hooks: str | None) -> None:
        """Set or remove hooks, `pre` and `post`; Rancher cordons a node before it sets its first hook."""
        if hooks.get("pre") or not any(hooks.values()):
            await self.cordon(node, cordoned=bool(hooks.get("pre")))
        named = {PRE_DRAIN if key == "pre" else POST_DRAIN: value for key, value in hooks.items()}
        await self.patch_secret(machine or node, {"metadata": {"annotations": named}})

    async def request(self, node: str, hook: str, *, record: bool = True) -> PhaseResult:
        """Let Rancher set the hook, `pre` or `post`, and reconcile."""
        await self.rancher(node, **{hook: OPTIONS})
        return await self.run(record=record)

    async def acknowledgements(self, node: str, *, machine: str = "") -> dict[str, str]:
        found = objects.annotations_of(await self.secret(machine or node))
        return {key: value for key, value in found.items() if key in {PRE, POST}}

    async def secret(self, node: str) -> Any:
        return await self.cluster.find(SECRETS, f"s-{node}", "fleet-local")

    async def finish(self, node: str, step: str, status: dict[str, Any] = COMPLETE) -> None:
        await self.cluster.finish(JOBS, f"up-node-upgrade-{step}-{node}", PLACE, status)

    async def complete(self, node: str, step: str, *, record: bool = True) -> PhaseResult:
        """Complete the node's Job, and reconcile."""
        await self.finish(node, step)
        return await self.run(record=record)

    async def fail(self, node: str, step: str, **more: str) -> None:
        failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", **more}
        await self.finish(node, step, {"conditions": [failed], "failed": 3})

    async def reboot(self, node: str) -> None:
        await self.report(node)

    async def report(
        self,
        node: str,
        *,
        os: str = RELEASE["os"],
        ready: str = "True",
        since: str = "",
        kubelet: str = "",
        boot: str = "",
    ) -> None:
        """Let the node's kubelet report a status."""
        info = {"osImage": os, "kubeletVersion": kubelet, "bootID": boot}
        changed = {"lastTransitionTime": since} if since else {}
        status = {"conditions": [{"type": "Ready", "status": ready, **changed}], "nodeInfo": info}
        await self.cluster.finish(NODES, node, "", status)

    async def cordon(self, node: str, *, cordoned: bool) -> None:
        if await self.client.find(NODES, node) is not None:
            await self.client.patch(NODES, node, MergePatch({"spec": {"unschedulable": cordoned or None}}))

    async def pending_os(self, node: str) -> str | None:
        return objects.annotations_of(await self.cluster.find(NODES, node)).get(PENDING)

    async def jobs(self) -> list[str]:
        return [name.removeprefix("up-node-upgrade-") for name in await self.cluster.names(JOBS)]

    async def put_interval(self) -> None:
        metadata = {"name": INTERVAL, "namespace": "longhorn-system"}
        await self.cluster.put(LONGHORN_SETTINGS, {"metadata": metadata, "value": "600"})

    async def interval(self) -> str:
        found = await self.cluster.find(LONGHORN_SETTINGS, INTERVAL, "longhorn-system")
        return str(found["value"])

    def warned(self) -> list[tuple[str, str]]:
        """Return reasons and names of the Warning events."""
        events = zip(self.cluster.recorder.recorded, self.cluster.recorder.names, strict=True)
        return [(reason, name) for (reason, _), name in events if reason not in {"PhaseTransition", *REASONS}]

    async def states(self) -> dict[str, str]:
        return {node: entry["state"] for node, entry in (await self.status())["nodeUpgradeStatuses"].items()}

    async def of_others(self) -> list[Object]:
        """Return everything that the phase overrides."""
        kinds = (LONGHORN_SETTINGS, ADDONS, PROVISIONING_CLUSTERS)
        return [item for kind in kinds for item in (await self.client.list(kind)).items]

    async def generation(self) -> int:
        found = await self.cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
        return int(found["spec"]["rkeConfig"]["provisionGeneration"])
