"""A simulated cluster on the real API server, whose kubelets run the Pods of the manager's image."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hack import scenario as scenarios
from hack.actors.context import ActorContext
from hack.actors.kubelet_access import KubeletServers
from hack.actors.repository_access import RepositoryServer
from hack.actors.toolkit import Toolkit
from hack.cluster.gateway import Gateway
from hack.cluster.population import Population
from hack.cluster.program import utc_now
from hack.control_plane.backend import RealBackend
from hack.control_plane.certificates import Authority, server_context
from hack.control_plane.control_plane import ControlPlane
from hack.control_plane.kubeconfig import kubeconfig, write
from hack.host.image import Image
from hack.host.job_commands import JobCommands
from hack.host.pod_network import GATEWAY, PodNetwork
from hack.host.pod_processes import SANDBOX, ImageContainers, PodProcesses, Runtime
from hack.host.pod_volumes import PodVolumes
from hack.host.service_proxy import ServiceProxy
from tests.support import tiers
from tests.support.cluster.kubectl import Cluster
from tests.support.managers.leader_ledger import LeaderLedger, WatchedWrites
from tests.support.programs.helm import Helm
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.transport import Request

IMAGE = "harvester-upgrade-manager"
PORT = 6443
#: Factor on the durations of the simulated cluster; the manager's own are as they are.
PACE = 0.05
_JWT_PARTS = 3


class PodRuntime:
    """Options of the simulated cluster by which Pods of the image are processes on a network."""

    def __init__(self, runtime: Runtime, *, repository: tuple[str, int]) -> None:
        self._runtime = runtime
        self._repository = repository
        self.processes: PodProcesses
        self.proxy: ServiceProxy

    def servers(self, context: ActorContext) -> PodProcesses:
        """Return what runs Pods of Deployments."""
        self.processes = PodProcesses(self._runtime, context)
        self.proxy = ServiceProxy(
            context,
            network=self._runtime.network,
            hosts_file=self._runtime.hosts_file,
            simulated=self._repository,
        )
        return self.processes

    def containers(self, context: ActorContext, toolkit: Toolkit) -> ImageContainers:
        """Return what runs Pods of Jobs."""
        return ImageContainers(lambda: self.processes, JobCommands(context, toolkit))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCluster:
    """The cluster with its command line tools, and the processes of the manager's Pods."""

    image: Image
    kubeconfig: Path
    kubectl: Cluster
    helm: Helm
    ledger: LeaderLedger
    processes: PodProcesses
    logs: Path
    volumes: Path

    async def start(self, *argv: str) -> asyncio.subprocess.Process:
        """Start a command in the image with the administrator's kubeconfig, as a user with docker does."""
        (self.image.root / "root/kubeconfig").touch()
        (self.logs.parent / "tmp").mkdir(exist_ok=True)
        return await asyncio.create_subprocess_exec(
            *("unshare", "--mount", "--uts", str(SANDBOX), str(self.image.root), "command", "0", "0"),
            *(f"{self.kubeconfig}:/root/kubeconfig", f"{self.logs.parent / 'tmp'}:/tmp", "--", *argv),
            env=self.image.environment | {"KUBECONFIG": "/root/kubeconfig"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *argv: str) -> ProcessResult:
        """Run a command in the image to its end."""
        process = await self.start(*argv)
        out, err = await process.communicate()
        return ProcessResult(process.returncode or 0, out.decode(), err.decode())


@asynccontextmanager
async def image_cluster(folder: Path, *, scenario: str) -> AsyncIterator[ImageCluster]:
    """Start the cluster with the image of the environment's $IMAGE_ROOT and $IMAGE_CONFIG."""
    image = Image.load(Path(os.environ["IMAGE_ROOT"]), Path(os.environ["IMAGE_CONFIG"]))
    async with AsyncExitStack() as stack:
        network = stack.enter_context(PodNetwork())
        plane = ControlPlane(tiers.assets(), api_flags=(f"--advertise-address={GATEWAY}",))
        await asyncio.to_thread(stack.enter_context, plane)
        backend = await stack.enter_async_context(RealBackend(plane))
        authority, ledger = Authority(now=utc_now()), LeaderLedger()
        writes = WatchedWrites(backend.client_transport, ledger=ledger, sender=_pod_of)
        tls = server_context(authority.server((GATEWAY,)), folder)
        gateway = await stack.enter_async_context(Gateway(writes, tls=tls, host=GATEWAY, port=PORT))
        repository = await stack.enter_async_context(RepositoryServer())
        host, _, port = repository.url.removeprefix("http://").partition(":")
        pods = PodRuntime(
            _runtime(folder, image, network, backend=backend, authority=authority.certificate),
            repository=(host, int(port)),
        )
        population = _population(backend, scenario, pods=pods, iso_base=repository.url)
        repository.serve(population.registry.repository)
        await population.create(api_url=gateway.url, install_crds=False)
        stack.push_async_callback(pods.processes.close)
        await stack.enter_async_context(population.alive())
        await stack.enter_async_context(_kubelets(backend, population, tls=tls).running(_nodes(scenario)))
        await stack.enter_async_context(pods.proxy.running())
        path = folder / "kubeconfig"
        write(path, kubeconfig(server=gateway.url, authority=authority.certificate, token=backend.token))
        yield ImageCluster(
            image=image,
            kubeconfig=path,
            kubectl=Cluster(backend.transport, program=tiers.assets().folder / "kubectl", kubeconfig=path, home=folder),
            helm=Helm(folder),
            ledger=ledger,
            processes=pods.processes,
            logs=folder / "logs",
            volumes=folder / "volumes",
        )


def _kubelets(backend: RealBackend, population: Population, *, tls: ssl.SSLContext) -> KubeletServers:
    """Return kubelets that Pods reach, as they reach the API server."""
    client = Client(backend.transport, user_agent="kubelets", random=Random(2))
    return KubeletServers(client, population.registry.stats, tls=tls, host=GATEWAY)


def _nodes(scenario: str) -> Sequence[str]:
    return scenarios.load(scenario).nodes.names


def _population(backend: RealBackend, scenario: str, *, pods: PodRuntime, iso_base: str) -> Population:
    return Population(
        backend,
        scenarios.load(scenario).changed(operators=True),
        seed=0,
        scale=PACE,
        iso_base=iso_base,
        containers=pods.containers,
        servers=pods.servers,
    )


def _runtime(folder: Path, image: Image, network: PodNetwork, *, backend: RealBackend, authority: bytes) -> Runtime:
    hosts_file, logs = folder / "hosts", folder / "logs"
    hosts_file.write_text("127.0.0.1 localhost\n")
    logs.mkdir()
    client = Client(backend.transport, user_agent="kubelet", random=Random(1))
    return Runtime(
        image=image,
        name=IMAGE,
        network=network,
        volumes=PodVolumes(folder=folder / "volumes", client=client, authority=authority),
        hosts_file=hosts_file,
        logs=logs,
        environment={"KUBERNETES_SERVICE_HOST": GATEWAY, "KUBERNETES_SERVICE_PORT": str(PORT)},
    )


def _pod_of(request: Request) -> str:
    """Return the Pod to which the sender's token is bound; empty for others."""
    parts = request.headers.get("authorization", "").removeprefix("Bearer ").split(".")
    if len(parts) != _JWT_PARTS:
        return ""
    claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    return str(claims.get("kubernetes.io", {}).get("pod", {}).get("name", ""))
