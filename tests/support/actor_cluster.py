"""A cluster with the objects and actors that a test adds."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from hack.actors.caches import Caches
from hack.actors.context import ActorContext
from hack.actors.hosts import Hosts
from hack.cluster import scenario as scenarios
from hack.cluster.foreign import foreign_crds
from hack.cluster.seeds import Seeds
from hack.faults.latency import SlowTransport
from hack.virtual_time import virtual_now
from tests.support.apiserver import make_server
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import NAMESPACES, NODES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from hack.actors.context import Actor
    from hack.cluster.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

ISO_URL = "http://releases.simulator.internal/iso/harvester.iso"
#: Durations equal those of the scenario.
EXACT: dict[str, Any] = {"jitter": 0.0}


class ActorCluster:
    """An API server, a client without latency, and the context of actors."""

    def __init__(
        self,
        *,
        scenario: Scenario | None = None,
        seed: int = 1,
        scale: float = 1.0,
        wrap: Callable[[Transport], Transport] = lambda inner: inner,
    ) -> None:
        self.scenario = scenario or scenarios.load("three-nodes").changed(**EXACT)
        self.server = make_server(seed)
        self.client = Client(self.server, user_agent="test", random=Random(seed), field_validation="Strict")
        slow = SlowTransport(self.server, random=Random(f"{seed}/latency"), least=0.002, most=0.012)
        self.hosts = Hosts(self.scenario)
        self.context = ActorContext(
            transport=wrap(slow),
            scenario=self.scenario,
            seed=str(seed),
            random=Random(seed),
            now=virtual_now,
            scale=scale,
            caches=Caches(Client(slow, user_agent="caches", random=Random(seed)), random=Random(seed)),
            hosts=self.hosts,
            iso_url=ISO_URL,
        )

    async def prepare(self, *namespaces: str, groups: tuple[str, ...] = ()) -> None:
        """Install the foreign kinds, or those of some groups, and create namespaces."""
        seeds = Seeds(self.client, self.scenario, now=virtual_now, iso_url=ISO_URL, api_url="https://10.0.0.1:443")
        await seeds.define(crd for crd in foreign_crds() if not groups or crd["spec"]["group"] in groups)
        for name in namespaces:
            body: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self.client.create(NAMESPACES, body)

    async def add_node(self, name: str, **spec: Any) -> Object:
        """Create a managed node that is Ready."""
        labels = {"kubernetes.io/hostname": name, "harvesterhci.io/managed": "true"}
        body: Object = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        return await self.client.create(NODES, body)

    @asynccontextmanager
    async def play(self, *actors: Actor) -> AsyncIterator[None]:
        """Run the server's controllers, the caches and these actors."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self.server.run(), name="server"),
                group.create_task(self.context.caches.run(), name="caches"),
                *(group.create_task(actor.run(), name=type(actor).__name__) for actor in actors),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
