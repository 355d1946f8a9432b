"""The dependencies of an actor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeVar

from hack.actors.controller_loop import WORKERS, ControllerLoop
from hack.actors.freezer import Freezer
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.client import Client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from hack.actors.caches import Cache, Caches
    from hack.actors.controller_loop import RequeueAfter
    from hack.actors.hosts import Hosts
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport

K = TypeVar("K")


class Actor(Protocol):
    """One simulated controller or component."""

    async def run(self) -> None:
        """Run until cancelled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorContext:
    """The cluster as an actor sees it, with a random source per actor."""

    transport: Transport
    scenario: Scenario
    #: Identifies the run: each actor's random source derives from it and the actor's name.
    seed: str
    random: Random
    #: Wall time, aware, UTC.
    now: Callable[[], datetime]
    #: Factor on all durations; 0 makes everything immediate.
    scale: float
    caches: Caches
    hosts: Hosts
    #: Where the simulator serves the ISO: the only address from which images can be imported.
    iso_url: str
    #: Freezes actors of the running cluster.
    freezer: Freezer = field(default_factory=Freezer)
    #: The actor's name.
    name: str = ""

    def for_actor(self, name: str) -> ActorContext:
        """Return the context for one actor, with a random source that is independent of other actors."""
        return replace(self, name=name, random=Random(f"{self.seed}/{name}"))

    def loop(
        self, name: str, reconcile: Callable[[K], Awaitable[RequeueAfter]], *, workers: int = WORKERS
    ) -> ControllerLoop[K]:
        """Create a loop of the actor, which stands still while the actor is frozen."""
        loop = ControllerLoop(name, reconcile, random=self.random, workers=workers, is_frozen=self._is_frozen)
        self.freezer.subscribe(lambda _: loop.wake())
        return loop

    def _is_frozen(self) -> bool:
        return self.freezer.is_frozen(self.name)

    def client(self, user_agent: str) -> Client:
        """Create the actor's client. Strict field validation: an unknown field is a bug of the actor."""
        return Client(self.transport, user_agent=user_agent, random=self.random, field_validation="Strict")

    def seconds(self, duration: float) -> float:
        """Return a duration of the scenario with scale and jitter applied."""
        jitter = self.scenario.jitter
        return duration * self.scale * (1 + self.random.uniform(-jitter, jitter))

    async def run_loop(self, loop: ControllerLoop[K], cache: Cache, key: Callable[[Object], K]) -> None:
        """Run a loop until cancelled; it starts with the objects of one cache, when all caches are synced."""
        await self.caches.synced()
        for obj in cache.store.list():
            loop.add(key(obj))
        await loop.run()

    def timestamp(self) -> str:
        """Return the wall time in RFC 3339."""
        return format_time(self.now())
