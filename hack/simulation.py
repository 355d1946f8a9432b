"""A simulated Harvester cluster in the test's event loop, reproducible from one seed.

On the embedded API server there are no sockets and time is virtual: the same scenario and seed give the same run to
the byte; another seed gives other UIDs, durations and interleavings.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from random import Random
from typing import TYPE_CHECKING, Self

from hack import scenario as scenarios
from hack.actors.api_certificates import ApiCertificates
from hack.actors.kubelet_access import InClusterKubelets
from hack.actors.repository_access import InClusterRepositoryClient
from hack.cluster.embedded_backend import EmbeddedBackend, virtual_backend
from hack.cluster.population import Population
from hack.cluster.strict import Strict
from hack.faults.middleware import Middleware
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from types import TracebackType

    from hack.apiserver.server import ApiServer
    from hack.cluster.backend import Backend
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

#: Addresses of the API server and the ISO, to which no client connects.
API_HOST, API_PORT = "10.53.0.1", 443
API_URL = f"https://{API_HOST}:{API_PORT}"
ISO_HOST = "http://releases.simulator.internal"
_USER_AGENT = "simulation"


class Simulation:
    """The cluster, which runs while its context is open.

    `scale` is a factor on all durations; `actors=False` starts no actors,
    for tests that simulate them; `backend` creates the API server for a seed.
    """

    def __init__(
        self,
        scenario: str | Scenario = "three-nodes",
        *,
        seed: int = 0,
        scale: float = 1.0,
        actors: bool = True,
        backend: Callable[[int], Backend] = virtual_backend,
    ) -> None:
        self.scenario = scenarios.load(scenario) if isinstance(scenario, str) else scenario
        self.seed = seed
        self._plays = actors
        self.random = self._random("manager")
        self.backend = backend(seed)
        #: The managers' transport: injects faults, counts, kills managers, and validates writes strictly.
        self.middleware = Middleware(Strict(self.backend.transport), random=self._random("middleware"))
        self._population = Population(self.backend, self.scenario, seed=seed, scale=scale, iso_base=ISO_HOST)
        self.hosts, self.registry = self._population.hosts, self._population.registry
        #: Freezes actors while the cluster runs.
        self.freezer = self._population.freezer
        #: For managers in process: http://<plan>-repo.harvester-system/…
        self.repository = InClusterRepositoryClient(self.registry.repository)
        #: For managers in process: https://INTERNAL-IP:10250/…
        self.kubelets = InClusterKubelets(self.registry.stats)
        #: The certificates that the API servers present.
        self.certificates = ApiCertificates(self.scenario, host=API_HOST, port=API_PORT, now=self.now, scale=scale)
        self._stack = AsyncExitStack()

    @property
    def iso_url(self) -> str:
        """Return the ISO's URL: the Version's, and the only one from which images can be imported."""
        return self._population.iso_url

    @property
    def server(self) -> ApiServer:
        """Return the embedded API server. Raises TypeError on another backend."""
        if not isinstance(self.backend, EmbeddedBackend):
            raise TypeError(f"{type(self.backend).__name__} has no embedded API server")
        return self.backend.server

    def now(self) -> datetime:
        """Return the cluster's wall time."""
        return self.backend.now()

    def transport(self) -> Transport:
        """Return a manager's transport, as an administrator, with the faults and counts of `middleware`."""
        return self.middleware

    def client(self, user_agent: str = _USER_AGENT) -> Client:
        """Create an administrator's client for the test, without middleware and latency."""
        return Client(Strict(self.backend.transport), user_agent=user_agent, random=self._random(user_agent))

    async def apply(self, plan: Object) -> Object:
        """Create an UpgradePlan."""
        return await self.client().create(UPGRADE_PLANS, plan)

    async def dump(self) -> str:
        """Return all objects as sorted JSON lines, to compare runs and end states."""
        return "\n".join(sorted(json.dumps(obj, sort_keys=True) for obj in await self.backend.objects()))

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.backend)
            await self._population.create(api_url=API_URL, install_crds=True)
            if self._plays:
                await stack.enter_async_context(self._population.alive())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def _random(self, name: str) -> Random:
        return Random(f"{self.seed}/{name}")
