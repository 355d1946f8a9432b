"""The simulated cluster in real time, behind HTTPS, on the API server that was asked for."""

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
from hack.cluster.certificates import LOOPBACK, Authority, server_context
from hack.cluster.embedded_backend import EmbeddedBackend
from hack.cluster.gateway import Gateway
from hack.cluster.kubeconfig import kubeconfig, write
from hack.cluster.population import Population
from hack.control_plane.assets import find_assets
from hack.control_plane.backend import RealBackend
from hack.control_plane.control_plane import ControlPlane
from hack.faults.middleware import Middleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.cluster.backend import Backend
    from hack.cluster.options import Options
    from hack.cluster.scenario import Scenario


#: The gateway's name: an EndpointSlice may hold no loopback address, and names of that zone mean this machine.
LOCAL_NAME = "kubernetes.localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A cluster that is set up."""

    api_url: str
    #: `{plan}` stands for the plan's name.
    repo_url: str
    #: Ends only when something in the cluster breaks.
    task: asyncio.Task[None]


def utc_now() -> datetime:
    """The wall time."""
    return datetime.now(UTC)


@asynccontextmanager
async def cluster(options: Options, scenario: Scenario) -> AsyncIterator[Running]:
    """Start everything and stop it afterwards.

    Raises OSError where a port or a file is not to be had, RealKubeError where a real API server is not.
    """
    async with AsyncExitStack() as stack:
        authority = Authority(now=utc_now())
        backend = await stack.enter_async_context(await _backend(options, stack))
        # What clients speak to has the middleware in front, as in process; without rules it only counts.
        middleware = Middleware(backend.client_transport, random=Random(f"{options.seed}/middleware"))
        # Read at once and not needed again: nothing is left of it even where this process is killed.
        with tempfile.TemporaryDirectory(prefix="simulated-cluster-") as folder:
            tls = server_context(authority.server((*LOOPBACK, LOCAL_NAME)), Path(folder))
        gateway = await stack.enter_async_context(Gateway(middleware, tls=tls, port=options.port))
        repository = await stack.enter_async_context(RepositoryServer())
        people = Population(backend, scenario, seed=options.seed, scale=options.scale, iso_base=repository.url)
        repository.serve(people.registry.repository)
        await people.found(api_url=f"https://{LOCAL_NAME}:{gateway.port}", ours=options.install_crds)
        task = await stack.enter_async_context(people.alive())
        write(options.kubeconfig, kubeconfig(server=gateway.url, authority=authority.certificate, token=backend.token))
        yield Running(api_url=gateway.url, repo_url=repository.url + "/{plan}", task=task)


async def _backend(options: Options, stack: AsyncExitStack) -> Backend:
    if options.api == "embedded":
        return EmbeddedBackend(seed=options.seed, now=utc_now, poster=HttpPoster(services={}), least=0, most=0)
    plane = ControlPlane(find_assets(os.environ))
    await asyncio.to_thread(stack.enter_context, plane)
    return RealBackend(plane)
