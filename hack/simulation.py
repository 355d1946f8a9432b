"""A whole simulated Harvester in the test's own event loop: no sockets, virtual time, and one seed for everything.

The same scenario and seed give the same run to the byte; another seed gives other UIDs, durations and interleavings.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Self

from hack import scenario as scenarios
from hack.actors.caches import Caches
from hack.actors.cast import Cast
from hack.actors.context import ActorContext
from hack.actors.hosts import Hosts
from hack.actors.repository_access import RepositoryFetcher
from hack.apiserver.bearer import Bearer
from hack.apiserver.server import ApiServer
from hack.cluster.foreign import foreign_crds, our_crd
from hack.cluster.seeds import Seeds
from hack.latency import SlowTransport
from hack.middleware import Middleware
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.kinds import UPGRADE_PLANS

if TYPE_CHECKING:
    from types import TracebackType

    from hack.apiserver.posting import Poster, Target
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Response, Transport

#: The wall time at the loop's time 0.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
#: Seconds that an actor's request takes, there and back.
LEAST_LATENCY, MOST_LATENCY = 0.002, 0.012
#: Where the API server and the ISO would be, if anybody connected to them.
API_URL = "https://10.53.0.1:443"
ISO_HOST = "http://releases.simulator.internal"
_USER_AGENT = "simulation"


class NoPoster:
    """Reaches no admission webhook."""

    async def post(self, target: Target, body: bytes, *, timeout: float) -> Response:  # noqa: ASYNC109, ARG002
        """Fail."""
        raise Transient(f"{target.url or target.service_name}: nothing is reached from inside a simulation")


class Simulation:
    """The cluster, playing as long as its context is open.

    `crds` says whether ours is installed too; `poster` reaches the webhook that a test runs; `scale` shortens all
    durations; `actors` False leaves the stage empty, for tests that play the parts themselves.
    """

    def __init__(
        self,
        scenario: str | Scenario = "three-nodes",
        *,
        seed: int = 0,
        scale: float = 1.0,
        crds: bool = True,
        actors: bool = True,
        poster: Poster | None = None,
    ) -> None:
        self.scenario = scenarios.load(scenario) if isinstance(scenario, str) else scenario
        self.seed = seed
        self._scale = scale
        self._crds = crds
        self._plays = actors
        self.random = self._dice("manager")
        self.server = ApiServer(now=self.now, random=self._dice("server"), poster=poster or NoPoster())
        #: What managers speak through: faults, counts and kills are hooked in here.
        self.middleware = Middleware(self.server, random=self._dice("middleware"))
        slow = SlowTransport(self.server, random=self._dice("latency"), least=LEAST_LATENCY, most=MOST_LATENCY)
        self.hosts = Hosts(self.scenario)
        reader = Client(slow, user_agent="simulated-cluster", random=self._dice("caches"))
        context = ActorContext(
            transport=slow,
            scenario=self.scenario,
            seed=str(seed),
            random=self._dice("cast"),
            now=self.now,
            scale=scale,
            caches=Caches(reader, random=self._dice("informers")),
            hosts=self.hosts,
            iso_url=self.iso_url,
        )
        self.cast = Cast(context)
        self.cast.answer(self.server.handlers)
        #: For managers that run inside: http://<plan>-repo.harvester-system/…
        self.fetcher = RepositoryFetcher(self.cast.repository)
        self._stack = AsyncExitStack()

    @property
    def iso_url(self) -> str:
        """The only address from which images can be imported, and the Version's."""
        return f"{ISO_HOST}/iso/harvester-{self.scenario.release.harvester}-amd64.iso"

    def now(self) -> datetime:
        """The virtual wall time."""
        return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())

    def transport(self, token: str = "") -> Transport:
        """The way to the API server for a manager, with the faults and counts of `middleware`.

        With a token, as the user for whom it was registered with `server.authenticator`; else as an administrator.
        """
        return Bearer(self.middleware, token=token) if token else self.middleware

    def client(self, user_agent: str = _USER_AGENT) -> Client:
        """For the test itself: around the middleware, without latency, as an administrator."""
        return Client(self.server, user_agent=user_agent, random=self._dice(user_agent))

    async def apply(self, plan: Object) -> Object:
        """Create an UpgradePlan."""
        return await self.client().create(UPGRADE_PLANS, plan)

    def dump(self) -> str:
        """All objects of all kinds as JSON lines, sorted: for comparing runs and end states."""
        storage = self.server.storage
        stored = [obj for collection in storage.collections() for obj in storage.objects(collection.name)]
        return "\n".join(sorted(json.dumps(obj, sort_keys=True) for obj in stored))

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(asyncio.TaskGroup())
            tasks = [group.create_task(self.server.run(), name="API server")]
            stack.push_async_callback(_cancel, tasks)
            await self._fill()
            if self._plays:
                tasks.append(group.create_task(self.cast.run(), name="cast"))
                await self.cast.ready()
            self._stack = stack.pop_all()
        return self

    async def _fill(self) -> None:
        seeds = Seeds(self.client(), self.scenario, now=self.now, iso_url=self.iso_url, api_url=API_URL)
        await seeds.define([*foreign_crds(), *([our_crd()] if self._crds else [])])
        await seeds.plant()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
        self.server.close()

    def _dice(self, name: str) -> Random:
        return Random(f"{self.seed}/{name}")


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in reversed(tasks):
        task.cancel()
