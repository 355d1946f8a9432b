"""The actors of a simulated cluster and its initial objects, on either backend."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

from hack.actors.caches import Caches
from hack.actors.context import ActorContext
from hack.actors.freezer import Freezer
from hack.actors.hosts import Hosts
from hack.actors.node_validator import NodeValidator
from hack.actors.registry import ActorRegistry
from hack.actors.servers import SimulatedServers
from hack.cluster.chart_proxy import proxy_charts
from hack.cluster.quorum import Quorum
from hack.cluster.seeds import Seeds
from hack.cluster.service_proxy import proxy_services
from hack.cluster.strict import Strict
from hack.crds.foreign import operator_crds, our_crd, service_crds
from hack.host.job_commands import JobCommands
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.actors.registry import ContainersFactory, ServersFactory
    from hack.cluster.backend import Backend
    from hack.scenario import Scenario

_USER_AGENT = "simulated-cluster"


class Population:
    """Hosts and actors of one scenario; their random sources derive from the seed.

    `iso_base` is the URL of the server that has the ISO, `scale` a factor on all durations; `containers` replaces
    our commands in the toolkit's containers, and `servers` the simulated containers of Deployments.
    """

    def __init__(
        self,
        backend: Backend,
        scenario: Scenario,
        *,
        seed: int,
        scale: float,
        iso_base: str,
        containers: ContainersFactory = JobCommands,
        servers: ServersFactory = SimulatedServers,
    ) -> None:
        self._backend = backend
        self._scenario = scenario
        self._seed = seed
        #: The ISO's URL: the Version's, and the only one from which images can be imported.
        self.iso_url = f"{iso_base}/iso/harvester-{scenario.release.harvester}-amd64.iso"
        self.hosts = Hosts(scenario)
        self.freezer = Freezer()
        wire = backend.actor_transport()
        reader = Client(wire, user_agent=_USER_AGENT, random=self._random("caches"))
        context = ActorContext(
            transport=wire,
            scenario=scenario,
            seed=str(seed),
            random=self._random("cast"),
            now=backend.now,
            scale=scale,
            caches=Caches(reader, random=self._random("informers")),
            hosts=self.hosts,
            iso_url=self.iso_url,
            freezer=self.freezer,
        )
        self._nodes = context.caches.of(NODES).store
        self.registry = ActorRegistry(
            context, controllers=not backend.has_controllers, containers=containers, servers=servers
        )
        self.registry.answer(backend.handlers)
        proxy_services(backend.handlers, self.registry.repository)
        if scenario.services:
            proxy_charts(backend.handlers, scenario, reader)

    async def create(self, *, api_url: str, install_crds: bool) -> None:
        """Create the initial objects on a serving backend; `install_crds` installs the UpgradePlan CRD too."""
        client = Client(Strict(self._backend.transport), user_agent=_USER_AGENT, random=self._random("seeds"))
        seeds = Seeds(
            client,
            self._scenario,
            now=self._backend.now,
            iso_url=self.iso_url,
            api_url=api_url,
            at_once=self._backend.concurrency,
        )
        further = [*service_crds()] if self._scenario.services else []
        further += operator_crds() if self._scenario.operators else []
        further += [our_crd()] if install_crds else []
        self._backend.configure(self._scenario, self.freezer)
        await self._backend.define(further)
        await seeds.create()

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """Run all actors; one that fails ends the block."""
        async with asyncio.TaskGroup() as group:
            quorum = group.create_task(Quorum(self.hosts, self._backend).run(), name="quorum")
            actors = group.create_task(self.registry.run(), name="actors")
            try:
                await self.registry.ready()
                if self._scenario.harvester.node_validator:
                    self._backend.admit(NodeValidator(self._nodes))
                yield
            finally:
                actors.cancel()
                quorum.cancel()

    def _random(self, name: str) -> Random:
        return Random(f"{self._seed}/{name}")
