"""Other work that holds the cluster, so that no upgrade may begin: its begin, its end, and a plan's words for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hack.simulation import Simulation
from upgrade_manager.api.keys import (
    FLEET_LOCAL,
    HARVESTER_SYSTEM,
    KUBE_SYSTEM,
    LABEL_COMPONENT,
    LABEL_HOSTNAME,
    LABEL_JOB_TYPE,
    LABEL_PLAN_UID,
    PROVISIONING_CLUSTER,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS, JOBS, MACHINES, PROVISIONING_CLUSTERS, UPGRADES, Resource

STATE, CLEANUP = "harvesterhci.io/upgradeState", "harvesterhci.io/upgradeCleanup"


def manifest(resource: Resource, name: str, namespace: str, **fields: Any) -> Object:
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return {**head, "metadata": metadata, **fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """An object that holds the cluster, and its end."""

    resource: Resource
    name: str
    namespace: str
    #: Of the object that is created; None for one that exists.
    created: Object | None = None
    #: A patch of metadata after that; None for none.
    changed: Object | None = None
    #: Written to the status; None for none.
    status: Object | None = None
    #: The patch of the object that ends it; None deletes the object.
    end: Object | None = None
    message: str
    #: The actor that ends it where it does not hang.
    controller: str = ""

    async def begin(self, simulation: Simulation) -> None:
        client = simulation.client()
        if self.created is not None:
            created = manifest(self.resource, self.name, self.namespace, **self.created)
            await client.create(self.resource, created, namespace=self.namespace)
        if self.changed is not None:
            await self._patch(client, self.changed)
        # The real controller of Jobs counts their Pods.
        if self.status is not None and not (self.resource is JOBS and simulation.backend.has_controllers):
            await self._patch(client, {"status": self.status}, subresource="status")

    async def hang(self, simulation: Simulation) -> None:
        """Begin it, while its controller hangs."""
        if self.controller:
            simulation.freezer.freeze(self.controller)
        await self.begin(simulation)

    async def finish(self, simulation: Simulation) -> None:
        client = simulation.client()
        if self.end is None:
            await client.delete(self.resource, self.name, namespace=self.namespace, propagation="Background")
        else:
            await self._patch(client, self.end)
        if self.controller:
            simulation.freezer.thaw(self.controller)

    async def _patch(self, client: Client, patch: Object, *, subresource: str = "") -> None:
        name, place = self.name, self.namespace
        await client.patch(self.resource, name, MergePatch(patch), namespace=place, subresource=subresource)


class Provisioning(Holding):
    """Rancher's work on the cluster, which has other conditions, too."""

    __slots__ = ()

    async def begin(self, simulation: Simulation) -> None:
        await self._set(simulation, status="Unknown", reason="Waiting", message="machine-0")

    async def finish(self, simulation: Simulation) -> None:
        await self._set(simulation, status="True")

    async def _set(self, simulation: Simulation, **updated: str) -> None:
        client = simulation.client()
        cluster = await client.get(self.resource, self.name, namespace=self.namespace)
        others = [one for one in objects.status(cluster).get("conditions") or [] if one["type"] != "Updated"]
        status = {"ready": True, "conditions": [*others, {"type": "Updated", **updated}]}
        await self._patch(client, {"status": status}, subresource="status")


def upgrade(message: str, **labels: str) -> Holding:
    created = {"metadata": {"labels": labels}, "spec": {"version": "v1.8.0"}}
    return Holding(
        resource=UPGRADES,
        name="hvst-upgrade",
        namespace=HARVESTER_SYSTEM,
        created=created,
        end={"metadata": {"labels": {STATE: "Succeeded", CLEANUP: None}}},
        message=f"Upgrade harvester-system/hvst-upgrade is {message}",
    )


def addon(state: str) -> Holding:
    return Holding(
        resource=ADDONS,
        name="rancher-logging",
        namespace=KUBE_SYSTEM,
        created={"spec": {"enabled": True, "repo": "x", "chart": "x", "version": "1", "valuesContent": ""}},
        status={"status": state},
        message=f"Addon kube-system/rancher-logging is in state {state}",
        controller="AddonController",
    )


def machine(message: str, status: Object) -> Holding:
    return Holding(
        resource=MACHINES,
        name="joins",
        namespace=FLEET_LOCAL,
        created={"spec": {"clusterName": "local", "bootstrap": {}, "infrastructureRef": {}}},
        status=status,
        message=f"Machine fleet-local/joins {message}",
    )


_LABELS = {LABEL_COMPONENT: "node-upgrade", LABEL_JOB_TYPE: "post-drain"}
#: Its Pod never starts, and counts as active.
_NOWHERE = {
    "restartPolicy": "Never",
    "nodeSelector": {LABEL_HOSTNAME: "nowhere"},
    "containers": [{"name": "x", "image": "x"}],
}
ORPHAN = Holding(
    resource=JOBS,
    name="earlier-node-upgrade-post-drain-node-1",
    namespace=HARVESTER_SYSTEM,
    created={"metadata": {"labels": _LABELS}, "spec": {"template": {"metadata": {}, "spec": _NOWHERE}}},
    # Without an active plan a policy refuses the creation of such a Job.
    changed={"metadata": {"labels": {LABEL_PLAN_UID: "of-no-plan"}}},
    status={"active": 1},
    message="Job harvester-system/earlier-node-upgrade-post-drain-node-1 of an UpgradePlan that has ended still runs",
)
RANCHER = Provisioning(
    resource=PROVISIONING_CLUSTERS,
    name=PROVISIONING_CLUSTER,
    namespace=FLEET_LOCAL,
    message="Cluster fleet-local/local is being updated by Rancher: Updated: machine-0",
)
HOLDINGS = {
    "a new built-in upgrade": upgrade("in progress (no state yet)"),
    "a built-in upgrade": upgrade("in progress (state UpgradingNodes)", **{STATE: "UpgradingNodes"}),
    "a clean-up": upgrade("still cleaning up", **{STATE: "Failed", CLEANUP: "Pending"}),
    "an orphaned Job": ORPHAN,
    "a node that joins": machine("is in phase Provisioning, not Running", {"phase": "Provisioning"}),
    "a Machine without a phase": machine("is not Running: it has no phase yet", {}),
    "an addon that is enabled": addon("AddonEnabling"),
    "an addon that is updated": addon("AddonUpdating"),
    "an addon that is disabled": addon("AddonDisabling"),
    "an update by Rancher": RANCHER,
}
