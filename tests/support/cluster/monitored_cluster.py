"""A simulated cluster on the real API server; its programs are processes with the rights of their service accounts."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hack.actors.kubelet_access import KubeletServers
from hack.actors.repository_access import RepositoryServer
from hack.cluster.gateway import Gateway
from hack.cluster.program import LOCAL_NAME
from hack.cluster.seed_harvester import api_endpoints
from hack.control_plane.certificates import LOOPBACK, Authority, server_context
from hack.control_plane.kubeconfig import kubeconfig, write
from hack.demo.ports import HOST, Ports, reserved_ports
from hack.demo.processes import Child, ProcessGroup, process_group
from hack.demo.registration import create_secret, register
from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.resources import (
    ENDPOINT_SLICES,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from webhook.certificates.rotation import CONFIGURATION

#: Service accounts: namespace and name.
MANAGER = ("harvester-system", "harvester-upgrade-manager")
WEBHOOK = ("harvester-system", "harvester-upgrade-manager-webhook")
SCRAPER = ("cattle-monitoring-system", "rancher-monitoring-prometheus")
#: Has no rights.
STRANGER = ("cattle-monitoring-system", "stranger")


@dataclass(frozen=True, slots=True)
class Addresses:
    """The free ports of one replica."""

    servers: Ports
    metrics: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredCluster:
    """The cluster, two managers and a webhook, which start later than what scrapes them."""

    stage: UpgradeRun
    children: ProcessGroup
    #: By service account.
    kubeconfigs: Mapping[tuple[str, str], Path]
    repo_url: str
    #: Of the managers, and of the webhook.
    addresses: tuple[Addresses, ...]
    webhook: Addresses
    #: Once they are started.
    programs: list[Child] = field(default_factory=list)

    @property
    def scraped(self) -> tuple[Addresses, ...]:
        """Return the addresses of all programs."""
        return (*self.addresses, self.webhook)

    async def start(self) -> None:
        """Start all programs, wait until they are ready, and register the webhook."""
        await create_secret(self.stage.client)
        managers = (self._manager(one) for one in self.addresses)
        self.programs.extend(await asyncio.gather(self._webhook(), *managers))
        await register(self.stage.client, port=self.webhook.servers.webhook)

    async def stop(self) -> None:
        """Stop all programs, and before remove the webhook, without which no plan can be created."""
        await self.stage.client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
        await asyncio.gather(*(program.stop() for program in self.programs))

    async def token(self, account: tuple[str, str]) -> str:
        """Create a service account unless it exists, and return a token for it."""
        return await _token(self.stage.client, account)

    async def _manager(self, addresses: Addresses) -> Child:
        flags = ["--leader-elect", "--kubelet-access=direct", "--webhook-bind-address=0", "--repo-url", self.repo_url]
        return await self._start("run", MANAGER, addresses, *flags)

    async def _webhook(self) -> Child:
        port = self.webhook.servers.webhook
        return await self._start("webhook", WEBHOOK, self.webhook, f"--webhook-bind-address={HOST}:{port}")

    async def _start(self, command: str, account: tuple[str, str], addresses: Addresses, *more: str) -> Child:
        ports = addresses.servers
        argv = ["env", f"POD_NAMESPACE={account[0]}", str(Path(sys.executable).with_name("upgrade-manager")), command]
        argv += ["--kubeconfig", str(self.kubeconfigs[account]), *more]
        flags = {"health-probe": ports.probes, "metrics": addresses.metrics}
        argv += [f"--{name}-bind-address={HOST}:{port}" for name, port in flags.items()]
        program = await self.children.start(f"{command}-{addresses.metrics}", argv)
        assert await program.is_ready(f"http://{HOST}:{ports.probes}/readyz", interval=0.1), program.tail(20)
        return program


@asynccontextmanager
async def monitored_cluster(simulation: Simulation) -> AsyncIterator[MonitoredCluster]:
    """Prepare a running simulation for programs with the rights of deploy/rbac."""
    async with AsyncExitStack() as stack:
        stage = await UpgradeRun.set_up(simulation)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="monitored-cluster-")))
        authority = Authority(now=datetime.now(UTC))
        tls = server_context(authority.server((*LOOPBACK, LOCAL_NAME)), folder)
        gateway = await stack.enter_async_context(Gateway(simulation.backend.client_transport, tls=tls))
        await _publish(stage.client, f"https://{LOCAL_NAME}:{gateway.port}")
        repository = await stack.enter_async_context(RepositoryServer())
        repository.serve(simulation.registry.repository)
        kubelets = KubeletServers(stage.client, simulation.registry.stats, tls=tls)
        await stack.enter_async_context(kubelets.running(simulation.scenario.nodes.names))
        kubeconfigs = {account: folder / account[1] for account in (MANAGER, WEBHOOK)}
        for account, path in kubeconfigs.items():
            token = await _token(stage.client, account)
            write(path, kubeconfig(server=gateway.url, authority=authority.certificate, token=token))
        yield MonitoredCluster(
            stage=stage,
            children=await stack.enter_async_context(process_group(folder)),
            kubeconfigs=kubeconfigs,
            repo_url=repository.url + "/{plan}",
            addresses=tuple(_addresses(stack) for _ in range(2)),
            webhook=_addresses(stack),
        )


def _addresses(stack: AsyncExitStack) -> Addresses:
    servers, more = (stack.enter_context(reserved_ports()) for _ in range(2))
    return Addresses(servers=servers, metrics=more.probes)


async def _token(client: Client, account: tuple[str, str]) -> str:
    namespace, name = account
    for resource, metadata in (
        (NAMESPACES, {"name": namespace}),
        (SERVICE_ACCOUNTS, {"name": name, "namespace": namespace}),
    ):
        with suppress(AlreadyExists):
            await client.create(resource, {"apiVersion": "v1", "kind": resource.kind, "metadata": metadata})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = SERVICE_ACCOUNTS.path(name, namespace=namespace)
    answer = await client.raw("POST", f"{path}/token", body=request)
    return str(json.loads(answer.body)["status"]["token"])


async def _publish(client: Client, url: str) -> None:
    """Let managers outside of this process check the gateway's certificate as that of the API server."""
    slice_ = api_endpoints(url)
    await client.delete(ENDPOINT_SLICES, objects.name(slice_), namespace=objects.namespace(slice_))
    await client.create(ENDPOINT_SLICES, slice_, namespace=objects.namespace(slice_))
