"""The API server's objects of one node that Rancher has upgraded, on a real kube-apiserver.

Rancher and the kubelet are simulated: their objects are written here, and the phases of the toolkit's Pods, too.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from hack.control_plane.backend import direct, real_crds
from hack.control_plane.control_plane import ADMIN
from hack.control_plane.definitions import define
from hack.control_plane.kubeconfig import kubeconfig
from hack.crds.foreign import our_crd
from hack.real_host.iso import KUBERNETES
from hack.real_host.root_tree import NODE
from upgrade_manager.api.keys import FLEET_LOCAL, HARVESTER_SYSTEM
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    NAMESPACES,
    NODES,
    PODS,
    PROVISIONING_CLUSTERS,
    SERVICE_ACCOUNTS,
    UPGRADE_PLANS,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hack.control_plane.control_plane import ControlPlane
    from upgrade_manager.kube.resources import Resource

PLAN = "up"


class NodeCluster:
    """The objects of the plan and of its node."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    @property
    def kubeconfig(self) -> str:
        """The file that the node's programs read; they reach the API server under its own address."""
        return kubeconfig(server=self._plane.url, authority=self._plane.certificate, token=ADMIN.token)

    @property
    def port(self) -> int:
        """The API server's port on the loopback."""
        return int(self._plane.url.rpartition(":")[2])

    def create(self) -> None:
        """Create all objects once."""
        self._do(self._create)

    def start_pod(self, name: str) -> None:
        """Create a Pod that runs on the node."""
        self._do(lambda client: _start_pod(client, name))

    def end_pod(self, name: str, phase: str) -> None:
        """Let the Pod end, as the kubelet reports it."""
        status = MergePatch({"status": {"phase": phase}})
        self._do(lambda client: client.patch(PODS, name, status, namespace=HARVESTER_SYSTEM, subresource="status"))

    def _do(self, call: Callable[[Client], Awaitable[Any]]) -> None:
        async def run() -> None:
            async with direct(self._plane, token=ADMIN.token) as transport:
                await call(Client(transport, user_agent="real-host", random=Random()))

        asyncio.run(run())

    async def _create(self, client: Client) -> None:
        wanted = f"{PROVISIONING_CLUSTERS.plural}.{PROVISIONING_CLUSTERS.group}"
        foreign = [one for one in real_crds(self._plane.assets) if one["metadata"]["name"] == wanted]
        await define(client, [our_crd(), *foreign])
        for name in (HARVESTER_SYSTEM, FLEET_LOCAL):
            await client.create(NAMESPACES, _object(NAMESPACES, name))
        await client.create(SERVICE_ACCOUNTS, _object(SERVICE_ACCOUNTS, "default", HARVESTER_SYSTEM))
        await client.create(PROVISIONING_CLUSTERS, _object(PROVISIONING_CLUSTERS, "local", FLEET_LOCAL))
        await client.create(NODES, _object(NODES, NODE))
        await client.create(UPGRADE_PLANS, _object(UPGRADE_PLANS, PLAN, spec={"version": "v1.8.0"}))
        node = MergePatch({"status": {"nodeInfo": {"kubeletVersion": KUBERNETES}}})
        await client.patch(NODES, NODE, node, subresource="status")
        plan = MergePatch({"status": {"previousVersion": "v1.7.1", "releaseMetadata": {"harvester": "v1.8.0"}}})
        await client.patch(UPGRADE_PLANS, PLAN, plan, subresource="status")


async def _start_pod(client: Client, name: str) -> None:
    containers = [{"name": "apply", "image": "toolkit"}]
    spec = {"nodeName": NODE, "restartPolicy": "Never", "containers": containers}
    await client.create(PODS, _object(PODS, name, HARVESTER_SYSTEM, spec=spec))
    running = MergePatch({"status": {"phase": "Running"}})
    await client.patch(PODS, name, running, namespace=HARVESTER_SYSTEM, subresource="status")


def _object(resource: Resource, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}
