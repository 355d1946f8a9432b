"""The simulated cluster in real time, behind HTTPS, on the selected API server."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hack.actors.repository_access import RepositoryServer
from hack.apiserver.http_poster import HttpPoster
from hack.cluster.embedded_backend import EmbeddedBackend
from hack.cluster.gateway import Gateway
from hack.cluster.population import Population
from hack.control_plane.assets import find_assets
from hack.control_plane.backend import RealBackend
from hack.control_plane.certificates import LOOPBACK, Authority, server_context
from hack.control_plane.control_plane import ControlPlane
from hack.control_plane.kubeconfig import kubeconfig, write
from hack.faults.middleware import Middleware
from hack.host.containers import ContainerSettings, ProcessContainers
from hack.host.iso import large_files
from hack.host.job_commands import JobCommands

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.actors.context import ActorContext
    from hack.actors.registry import ContainersFactory
    from hack.actors.toolkit import Toolkit
    from hack.cluster.backend import Backend
    from hack.cluster.options import Options
    from hack.scenario import Scenario


#: The gateway's host: an EndpointSlice rejects loopback addresses, and names of this zone resolve to this machine.
LOCAL_NAME = "kubernetes.localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A running simulated cluster."""

    api_url: str
    #: `{plan}` stands for the plan's name.
    repo_url: str


def utc_now() -> datetime:
    """Return the wall time."""
    return datetime.now(UTC)


@asynccontextmanager
async def cluster(options: Options, scenario: Scenario) -> AsyncIterator[Running]:
    """Start the cluster and stop it on exit.

    Raises OSError where a port or a file cannot be used, AssetsError or ControlPlaneError without a real API server.
    """
    async with AsyncExitStack() as stack:
        # Valid in the cluster's time, too.
        authority = Authority(now=options.time.now())
        backend = await stack.enter_async_context(await _backend(options, stack))
        # The middleware is in front of the API server, as in process; without rules it counts requests.
        middleware = Middleware(backend.client_transport, random=Random(f"{options.seed}/middleware"))
        # Loaded at once and removed: no key stays on disk if this process is killed.
        with tempfile.TemporaryDirectory(prefix="simulated-cluster-") as folder:
            tls = server_context(authority.server((*LOOPBACK, LOCAL_NAME)), Path(folder))
        gateway = await stack.enter_async_context(Gateway(middleware, tls=tls, port=options.port))
        repository = await stack.enter_async_context(RepositoryServer())
        containers = _containers(options, stack, repo_url=repository.url)
        population = Population(
            backend,
            scenario.changed(operators=True),
            seed=options.seed,
            scale=options.scale,
            iso_base=repository.url,
            containers=containers,
        )
        if options.real_toolkit:
            files = population.registry.repository.files
            files |= large_files(scenario, files)
        repository.serve(population.registry.repository)
        await population.create(api_url=f"https://{LOCAL_NAME}:{gateway.port}", install_crds=options.install_crds)
        await stack.enter_async_context(population.alive())
        write(options.kubeconfig, kubeconfig(server=gateway.url, authority=authority.certificate, token=backend.token))
        yield Running(api_url=gateway.url, repo_url=repository.url + "/{plan}")


def _containers(options: Options, stack: AsyncExitStack, *, repo_url: str) -> ContainersFactory:
    """Return what runs in the Jobs of the toolkit."""
    if not options.real_toolkit:
        return JobCommands
    folder = options.hosts or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="simulated-hosts-")))
    # Containers have separate working directories.
    settings = ContainerSettings(
        folder=folder.resolve(), kubeconfig=options.kubeconfig.resolve(), repo_url=repo_url + "/{plan}"
    )

    def make(context: ActorContext, toolkit: Toolkit) -> ProcessContainers:
        return ProcessContainers(settings, context, toolkit)

    return make


async def _backend(options: Options, stack: AsyncExitStack) -> Backend:
    if options.api == "embedded":
        poster = HttpPoster(services=options.services)
        return EmbeddedBackend(seed=options.seed, now=options.time.now, poster=poster, least=0, most=0)
    plane = ControlPlane(find_assets(os.environ))
    await asyncio.to_thread(stack.enter_context, plane)
    return RealBackend(plane)
