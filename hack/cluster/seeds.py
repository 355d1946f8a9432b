"""Creates a scenario's initial objects on an empty API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hack.actors.images import claim_of
from hack.actors.kinds import (
    CAPI_CLUSTERS,
    CLUSTER_REPOS,
    DAEMON_SETS,
    FLEET_CLUSTERS,
    INSTANCE_MANAGERS,
    LONGHORN_NODES,
    RANCHER_CLUSTERS,
    RANCHER_SETTINGS,
)
from hack.actors.longhorn_disks import longhorn_node
from hack.actors.virtual_machines import instance_of
from hack.cluster import seed_harvester, seed_machines, seed_nodes, seed_services
from hack.cluster.templates import build
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    ADDONS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    KUBEVIRTS,
    LONGHORN_ENGINES,
    LONGHORN_REPLICAS,
    LONGHORN_SETTINGS,
    LONGHORN_VOLUMES,
    MACHINES,
    MANAGED_CHARTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PROVISIONING_CLUSTERS,
    RANCHER_FEATURES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SETTINGS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    VERSIONS,
    VIRTUAL_MACHINE_IMAGES,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from datetime import datetime

    from hack.scenario import Machine, Scenario
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: Kinds whose status is written with the object: they have no status subresource.
_WHOLE = frozenset({VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINE_IMAGES, SETTINGS, RANCHER_FEATURES})
#: Kinds of webhook configurations.
_WEBHOOKS = (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
#: The version of KubeVirt, and of the launchers that it has started.
_LAUNCHER = build("kubevirt")["status"]["observedKubeVirtVersion"]


class Seeds:
    """Creates all initial objects once; existing ones stay as they are.

    Nodes and machines are created `at_once` at a time: one at a time is reproducible where
    the server is, many are faster elsewhere.
    """

    def __init__(
        self,
        client: Client,
        scenario: Scenario,
        *,
        now: Callable[[], datetime],
        iso_url: str,
        api_url: str,
        at_once: int = 1,
    ) -> None:
        self._client = client
        self._scenario = scenario
        self._now = now
        self._iso_url = iso_url
        self._api_url = api_url
        self._places = asyncio.Semaphore(at_once)

    async def create(self) -> None:
        """Create the cluster's objects."""
        scenario, at = self._scenario, format_time(self._now())
        image = build("image", name=f"harvester-{scenario.release.harvester}", iso_url=self._iso_url, at=at)
        await self._create_all(
            (NAMESPACES, seed_harvester.namespaces(scenario)),
            (SERVICE_ACCOUNTS, seed_harvester.service_accounts()),
            (ENDPOINT_SLICES, [seed_harvester.api_endpoints(self._api_url, scenario.api_servers)]),
            (SETTINGS, seed_harvester.settings(scenario)),
            (VERSIONS, [seed_harvester.version(scenario, self._iso_url)]),
        )
        claim = claim_of(await self._create(VIRTUAL_MACHINE_IMAGES, image))
        bound = {"phase": "Bound", "accessModes": claim["spec"]["accessModes"]}
        await self._create_all(
            (PERSISTENT_VOLUME_CLAIMS, [{**claim, "status": bound}]),
            (CAPI_CLUSTERS, [build("capi_cluster")]),
            (MANAGED_CHARTS, seed_harvester.charts(scenario, at=at)),
            (LONGHORN_SETTINGS, seed_harvester.longhorn_settings(scenario)),
            (ADDONS, map(seed_harvester.addon, scenario.addons)),
            (KUBEVIRTS, [build("kubevirt")]),
            (DEPLOYMENTS, seed_services.controllers(scenario)),
        )
        if scenario.services:
            await self._create_all(
                (DEPLOYMENTS, seed_services.deployments(scenario)),
                (DAEMON_SETS, [seed_services.daemon_set(scenario)]),
                (INSTANCE_MANAGERS, seed_services.instance_managers(scenario)),
                (RANCHER_SETTINGS, [seed_services.setting(scenario)]),
                (RANCHER_CLUSTERS, [build("rancher_cluster")]),
                (RANCHER_FEATURES, [seed_services.feature()]),
                (CLUSTER_REPOS, seed_services.repositories(at=at)),
                *((one, [seed_services.capi_webhooks(one.kind)]) for one in _WEBHOOKS),
                (SECRETS, seed_services.releases(scenario)),
                (CONFIG_MAPS, [seed_services.fleet_config()]),
                (FLEET_CLUSTERS, [seed_services.fleet_cluster(at=at)]),
            )
        await self._create_nodes(at)
        async with asyncio.TaskGroup() as group:
            for machine in seed_machines.machines_of(scenario):
                group.create_task(self._in_turn(self._create_machine(machine)))

    async def _create_all(self, *groups: tuple[Resource, Iterable[Object]]) -> None:
        for resource, listed in groups:
            for obj in listed:
                await self._create(resource, obj)

    async def _in_turn(self, work: Coroutine[Any, Any, None]) -> None:
        async with self._places:
            await work

    async def _create_machine(self, machine: Machine) -> None:
        created = await self._create(VIRTUAL_MACHINES, seed_machines.virtual_machine(machine))
        if machine.run_strategy != "Halted":
            await self._create(VIRTUAL_MACHINE_INSTANCES, instance_of(created, node=machine.node, launcher=_LAUNCHER))
        if machine.volume:
            await self._create_all(
                (LONGHORN_VOLUMES, [seed_machines.volume(machine, at=format_time(self._now()))]),
                (LONGHORN_ENGINES, [seed_machines.engine(machine, self._scenario)]),
                (LONGHORN_REPLICAS, seed_machines.replicas(machine, self._scenario)),
            )

    async def _create_nodes(self, at: str) -> None:
        scenario = self._scenario
        provisioned = build("provisioning_cluster", kubernetes=scenario.software.kubernetes, at=at)
        cluster = await self._create(PROVISIONING_CLUSTERS, provisioned)
        async with asyncio.TaskGroup() as group:
            for name in scenario.nodes.names:
                group.create_task(self._in_turn(self._create_node(name, cluster, at)))

    async def _create_node(self, name: str, cluster: Object, at: str) -> None:
        scenario = self._scenario
        node = await self._create(NODES, seed_nodes.node(name, scenario, at=at))
        if scenario.operators and name in scenario.nodes.for_machines:
            await self._create(LONGHORN_NODES, longhorn_node(name))
        machine = await self._create(MACHINES, seed_nodes.machine(name, scenario, node, at=at))
        await self._create(SECRETS, seed_nodes.plan_secret(name, scenario, cluster, machine))

    async def _create(self, resource: Resource, obj: Object) -> Object:
        """Create an object with its status."""
        name, namespace = objects.name(obj), objects.namespace(obj)
        try:
            created = await self._client.create(resource, obj)
        except AlreadyExists:
            return await self._client.get(resource, name, namespace=namespace)
        if "status" not in obj or resource in _WHOLE:
            return created
        patch = MergePatch({"status": obj["status"]})
        return await self._client.patch(resource, name, patch, namespace=namespace, subresource="status")
