"""Everybody who lives in a simulated cluster, on whatever ground, and what stands there when they come."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

from hack.actors.caches import Caches
from hack.actors.context import ActorContext
from hack.actors.hosts import Hosts
from hack.actors.registry import Cast
from hack.cluster.foreign import our_crd
from hack.cluster.quorum import Quorum
from hack.cluster.seeds import Seeds
from hack.cluster.strict import Strict
from upgrade_manager.kube.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.cluster.backend import Ground
    from hack.cluster.scenario import Scenario

_USER_AGENT = "simulated-cluster"


class Population:
    """Machines and actors of one scenario; all their dice follow from the seed.

    `iso_base` is the URL of the server that has the ISO, `scale` a factor on all durations.
    """

    def __init__(self, ground: Ground, scenario: Scenario, *, seed: int, scale: float, iso_base: str) -> None:
        self._ground = ground
        self._scenario = scenario
        self._seed = seed
        #: The only address from which images can be imported, and the Version's.
        self.iso_url = f"{iso_base}/iso/harvester-{scenario.release.harvester}-amd64.iso"
        self.hosts = Hosts(scenario)
        wire = ground.slowed()
        reader = Client(wire, user_agent=_USER_AGENT, random=self._dice("caches"))
        context = ActorContext(
            transport=wire,
            scenario=scenario,
            seed=str(seed),
            random=self._dice("cast"),
            now=ground.now,
            scale=scale,
            caches=Caches(reader, random=self._dice("informers")),
            hosts=self.hosts,
            iso_url=self.iso_url,
        )
        self.cast = Cast(context, kubernetes=not ground.has_controllers)
        self.cast.answer(ground.handlers)

    async def found(self, *, api_url: str, ours: bool) -> None:
        """Make the cluster on the ground, which serves already; `ours` says whether with the UpgradePlan's kind."""
        client = Client(Strict(self._ground.transport), user_agent=_USER_AGENT, random=self._dice("seeds"))
        seeds = Seeds(
            client,
            self._scenario,
            now=self._ground.now,
            iso_url=self.iso_url,
            api_url=api_url,
            at_once=self._ground.takes_at_once,
        )
        await seeds.define([*self._ground.foreign_crds(), *([our_crd()] if ours else [])])
        await self._ground.defined()
        await seeds.plant()

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[asyncio.Task[None]]:
        """All of them at work; the task ends only when one breaks."""
        async with asyncio.TaskGroup() as group:
            quorum = group.create_task(Quorum(self.hosts, self._ground).run(), name="quorum")
            cast = group.create_task(self.cast.run(), name="cast")
            try:
                await self.cast.ready()
                yield cast
            finally:
                cast.cancel()
                quorum.cancel()

    def _dice(self, name: str) -> Random:
        return Random(f"{self._seed}/{name}")
