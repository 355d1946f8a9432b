"""The scripts of the recorded runs of Rancher, for test_rancher_timelines.py: what others did to the cluster."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from hack.apiserver.status import bad_request
from hack.cluster.seed_nodes import secret_name
from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import NODES, PODS, PROVISIONING_CLUSTERS, SECRETS

if TYPE_CHECKING:
    from hack.apiserver.admission import Operation, WriteOptions
    from hack.apiserver.resources import Row
    from hack.simulation import Simulation
    from upgrade_manager.kube.objects import Object

RKE, HOOK = "rke.cattle.io/", "harvesterhci.io/"
#: Virtual seconds without any change of a Secret after which a run has settled.
_QUIET = 40.0
_INTERVAL = 0.05
_REFUSAL = "can't enable maintenance mode or cordon on the last available node"


class Script:
    """Acts of the manager, the hooks, the kubelets and users on the cluster."""

    def __init__(self, simulation: Simulation, recorded: dict[str, Any], *, delay: float, reboots: bool) -> None:
        self.simulation = simulation
        self._client = simulation.client()
        self._texts = recorded["texts"]
        changes = [line["change"] for line in recorded["timeline"] if line["object"].startswith("cluster/")]
        self._patches = iter(changes[1:])
        self._delay = delay
        self._reboots = reboots
        #: Nodes whose pre-drain hooks are not answered.
        self.held: set[str] = set()
        self._answered: dict[tuple[str, str], str] = {}

    async def create_pods(self) -> None:
        """Create a Pod on each node, which a drain evicts."""
        for node in self.simulation.scenario.nodes.names:
            container = {"name": "c", "image": "busybox"}
            spec = {"nodeName": node, "containers": [container], "tolerations": [{"operator": "Exists"}]}
            metadata = {"name": f"pod-{node}", "namespace": "default"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            await self._client.create(PODS, pod)

    async def patch(self) -> None:
        """Patch the Cluster as the manager did next in the recording."""
        change = next(self._patches)
        spec, config = {}, {}
        if "kubernetesVersion" in change:
            spec["kubernetesVersion"] = change["kubernetesVersion"][1]
        if "provisionGeneration" in change:
            config["provisionGeneration"] = change["provisionGeneration"][1]
        if "upgradeStrategy" in change:
            config["upgradeStrategy"] = json.loads(change["upgradeStrategy"][1])
        await self.patch_cluster(spec, config)

    async def patch_cluster(self, spec: Object, config: Object, *, labels: Object | None = None) -> None:
        """Replace these fields of the Cluster."""
        cluster = await self._client.get(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, namespace=FLEET_LOCAL)
        before = objects.spec(cluster)
        after = {**before, **spec, "rkeConfig": {**before["rkeConfig"], **config}}
        body = {"metadata": {"labels": labels or {}, "annotations": labels or {}}, "spec": merge_diff(before, after)}
        await self._client.patch(PROVISIONING_CLUSTERS, PROVISIONING_CLUSTER, MergePatch(body), namespace=FLEET_LOCAL)

    async def until(self, key: str, node: str = "node-0") -> None:
        """Wait until Rancher has set the annotation."""
        while RKE + key not in self._annotations(node):  # noqa: ASYNC110  # the storage has no event
            await asyncio.sleep(_INTERVAL)

    async def answer_hooks(self) -> None:
        """Answer each hook of each node some time after Rancher asks, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for node in self.simulation.scenario.nodes.names:
                    self._begin(group, node, self._annotations(node))
                await asyncio.sleep(_INTERVAL)

    def _begin(self, group: asyncio.TaskGroup, node: str, annotations: dict[str, str]) -> None:
        for asked, hook in (("pre-drain", "pre-hook"), ("post-drain", "post-hook")):
            value = annotations.get(RKE + asked, "")
            if not value:
                self._answered.pop((node, asked), None)
            elif self._answered.get((node, asked)) != value and not (asked == "pre-drain" and node in self.held):
                self._answered[node, asked] = value
                reboots = asked == "post-drain" and self._reboots
                group.create_task(self._answer_later(node, hook, value, reboots=reboots))

    async def _answer_later(self, node: str, hook: str, value: str, *, reboots: bool) -> None:
        await asyncio.sleep(self._delay)
        if reboots:
            self.simulation.hosts.power_off(node)
            await asyncio.sleep(1.5)
            self.simulation.hosts.power_on(node)
            await asyncio.sleep(0.5)
        await self.answer(node, hook, value)

    async def answer(self, node: str, hook: str, value: str) -> None:
        patch = MergePatch({"metadata": {"annotations": {HOOK + hook: value}}})
        await self._client.patch(SECRETS, secret_name(node), patch, namespace=FLEET_LOCAL)

    async def uncordon(self, node: str) -> None:
        await self._client.patch(NODES, node, MergePatch({"spec": {"unschedulable": None}}))

    async def settle(self) -> None:
        """Wait until no Secret changes."""
        before: list[str] = []
        nodes = self.simulation.scenario.nodes.names
        while before != (now := [objects.resource_version(self._secret(node)) for node in nodes]):
            before = now
            await asyncio.sleep(_QUIET)

    def _annotations(self, node: str) -> dict[str, str]:
        return objects.annotations_of(self._secret(node))

    def _secret(self, node: str) -> Object:
        stored = self.simulation.server.storage.get(SECRETS.name, (FLEET_LOCAL, secret_name(node)))
        assert stored is not None
        return stored.object


class CordonsRefused:
    """A stage of admission that refuses to cordon nodes, as Harvester's validator does for the last available one."""

    def __init__(self, *nodes: str) -> None:
        self.nodes = set(nodes)

    def __call__(
        self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        _ = (operation, options)
        begins = objects.spec(new).get("unschedulable") and not objects.spec(old or {}).get("unschedulable")
        if row.resource == NODES and begins and objects.name(new) in self.nodes:
            raise bad_request(_REFUSAL)
        return new
