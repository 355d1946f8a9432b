"""What every actor is made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Protocol

from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hack.actors.caches import Caches
    from hack.actors.hosts import Hosts
    from hack.cluster.scenario import Scenario
    from upgrade_manager.kube.transport import Transport


class Actor(Protocol):
    """One inhabitant of the cluster."""

    async def run(self) -> None:
        """Run until cancelled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorContext:
    """The cluster as an actor finds it, and its own dice."""

    transport: Transport
    scenario: Scenario
    #: Names this run: all dice of all actors follow from it and from the actor's name.
    seed: str
    random: Random
    #: Wall time, aware, UTC.
    now: Callable[[], datetime]
    #: Factor on all durations; 0 makes everything happen at once.
    scale: float
    caches: Caches
    hosts: Hosts
    #: Where the simulator serves the ISO: the only address from which images can be imported.
    iso_url: str

    def for_actor(self, name: str) -> ActorContext:
        """The same for one actor, whose dice do not depend on how often others throw theirs."""
        return replace(self, random=Random(f"{self.seed}/{name}"))

    def client(self, user_agent: str) -> Client:
        """For this actor's requests. Strict: a field that a kind does not have is a mistake of ours."""
        return Client(self.transport, user_agent=user_agent, random=self.random, field_validation="Strict")

    def seconds(self, duration: float) -> float:
        """A duration of the scenario as it comes out this time."""
        jitter = self.scenario.jitter
        return duration * self.scale * (1 + self.random.uniform(-jitter, jitter))

    def timestamp(self) -> str:
        """The wall time, as objects carry it."""
        return format_time(self.now())
