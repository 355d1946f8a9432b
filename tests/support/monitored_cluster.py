"""A simulated cluster on the real API server, whose managers are processes with the rights of their service account."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hack.actors.repository_access import RepositoryServer
from hack.cluster.certificates import LOOPBACK, Authority, server_context
from hack.cluster.gateway import Gateway
from hack.cluster.kubeconfig import kubeconfig, write
from hack.cluster.program import LOCAL_NAME
from hack.cluster.seed_harvester import api_endpoints
from hack.demo.ports import HOST, reserved_ports
from hack.demo.processes import process_group
from hack.demo.registration import create_secret, register
from tests.support.upgrade import UpgradeRun
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.resources import (
    ENDPOINT_SLICES,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from webhook.certificates.rotation import CONFIGURATION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.demo.ports import Ports
    from hack.demo.processes import Child, ProcessGroup
    from hack.simulation import Simulation
    from upgrade_manager.kube.client import Client

#: Service accounts: namespace and name.
MANAGER = ("harvester-system", "harvester-upgrade-manager")
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
    """The cluster, and two managers, which start later than what scrapes them."""

    stage: UpgradeRun
    children: ProcessGroup
    kubeconfig: Path
    repo_url: str
    addresses: tuple[Addresses, ...]
    #: Once they are started.
    managers: list[Child] = field(default_factory=list)

    async def start(self) -> None:
        """Start both managers, wait until they are ready, and register the webhook of the first."""
        await create_secret(self.stage.client)
        self.managers.extend(await asyncio.gather(*(self._start(one) for one in self.addresses)))
        await register(self.stage.client, port=self.addresses[0].servers.webhook)

    async def stop(self) -> None:
        """Stop both managers, and before remove the webhook, without which no plan can be created."""
        await self.stage.client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
        await asyncio.gather(*(manager.stop() for manager in self.managers))

    async def token(self, account: tuple[str, str]) -> str:
        """Create a service account unless it exists, and return a token for it."""
        return await _token(self.stage.client, account)

    async def _start(self, addresses: Addresses) -> Child:
        ports = addresses.servers
        command = ["env", "ENABLE_WEBHOOKS=true", f"POD_NAMESPACE={MANAGER[0]}"]
        command += [str(Path(sys.executable).with_name("upgrade-manager")), "run", "--leader-elect"]
        command += ["--kubeconfig", str(self.kubeconfig), "--repo-url", self.repo_url]
        flags = {"health-probe": ports.probes, "webhook": ports.webhook, "metrics": addresses.metrics}
        command += [f"--{name}-bind-address={HOST}:{port}" for name, port in flags.items()]
        manager = await self.children.start(f"manager-{addresses.metrics}", command)
        assert await manager.is_ready(f"http://{HOST}:{ports.probes}/readyz", interval=0.1), manager.tail(20)
        return manager


@asynccontextmanager
async def monitored_cluster(simulation: Simulation) -> AsyncIterator[MonitoredCluster]:
    """Prepare a running simulation for managers with the rights of deploy/rbac."""
    async with AsyncExitStack() as stack:
        stage = await UpgradeRun.set_up(simulation)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="monitored-cluster-")))
        authority = Authority(now=datetime.now(UTC))
        tls = server_context(authority.server((*LOOPBACK, LOCAL_NAME)), folder)
        gateway = await stack.enter_async_context(Gateway(simulation.backend.client_transport, tls=tls))
        await _publish(stage.client, f"https://{LOCAL_NAME}:{gateway.port}")
        repository = await stack.enter_async_context(RepositoryServer())
        repository.serve(simulation.registry.repository)
        path = folder / "kubeconfig"
        token = await _token(stage.client, MANAGER)
        write(path, kubeconfig(server=gateway.url, authority=authority.certificate, token=token))
        yield MonitoredCluster(
            stage=stage,
            children=await stack.enter_async_context(process_group(folder)),
            kubeconfig=path,
            repo_url=repository.url + "/{plan}",
            addresses=tuple(_addresses(stack) for _ in range(2)),
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
