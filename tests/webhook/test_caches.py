"""Reviews on caches."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random

import pytest

from hack.bench.recorder import Recorder
from hack.faults.rules import Action, Cut, Delay, Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import LONGHORN_VOLUMES, MACHINES, NODES
from webhook import listings
from webhook.admission import Admission
from webhook.caches import KEEP, ClusterCaches
from webhook.cluster import Listing, LiveReader
from webhook.review import PLAN_KIND, AdmissionRequest
from webhook.runner import DEADLINE
from webhook.sharing import SharedReader

#: Cordoned nodes are always read.
LARGE = {listing.resource.plural for listing in listings.LARGE} - {"nodes"}
#: Seconds in which caches fill, and receive events.
SETTLE = 5.0


class Webhook:
    """An admission with caches of a simulated cluster."""

    def __init__(self, simulation: Simulation, large: Sequence[Listing]) -> None:
        self.recorder = Recorder(simulation.transport())
        client = Client(self.recorder, user_agent="webhook", random=Random(0))
        self.live = SharedReader(LiveReader(client))
        self.caches = ClusterCaches(
            client, listings=large, changes=listings.CORDONED_NODES, live=self.live, random=Random(0)
        )
        self.admission = Admission(self.live, caches=self.caches, toolkit=TOOLKIT)
        self.simulation = simulation

    @property
    def read(self) -> list[str]:
        """The plurals that were read."""
        return [exchange.request.path.rpartition("/")[2] for exchange in self.recorder.exchanges]

    async def create(self) -> list[str]:
        """Review a new plan; return the messages of the denial."""
        plan = {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}}
        request = AdmissionRequest(
            uid="1", operation="CREATE", kind=PLAN_KIND, subresource="", name="demo", new=plan, old=None
        )
        return [finding.message for finding in (await self.admission.decide(request)).findings]

    async def is_live(self) -> bool:
        """Review a plan; return whether that has listed what is cached."""
        self.recorder.exchanges.clear()
        await self.create()
        return bool(LARGE & {*self.read})

    async def set_phase(self, phase: str) -> str:
        """Set the phase of a Machine; return its name."""
        client = self.simulation.client()
        name = objects.name((await client.list(MACHINES, namespace=FLEET_LOCAL)).items[0])
        patch = MergePatch({"status": {"phase": phase}})
        await client.patch(MACHINES, name, patch, namespace=FLEET_LOCAL, subresource="status")
        return name


@asynccontextmanager
async def running(*rules: Rule, large: Sequence[Listing] = listings.LARGE) -> AsyncIterator[Webhook]:
    """Run the caches, and fill them by a review."""
    async with Simulation(actors=False) as simulation, asyncio.TaskGroup() as group:
        for rule in rules:
            simulation.middleware.add(rule)
        webhook = Webhook(simulation, large)
        task = group.create_task(webhook.caches.run())
        assert await webhook.is_live()
        await asyncio.sleep(SETTLE)
        yield webhook
        task.cancel()


def machine_watches(action: Action) -> Rule:
    return Rule(match=Match(verbs=("watch",), resource="machines.cluster.x-k8s.io"), action=action)


async def test_caches_are_read_once_in_sync() -> None:
    async with running() as webhook:
        assert not await webhook.is_live()
        assert {"upgradeplans", "versions"} <= {*webhook.read}


@pytest.mark.rule("admission: reviews that wait at the same time share a list that began after each of them")
@pytest.mark.parametrize(("is_cold", "kinds", "lists"), [(True, 14, 2), (False, 11, 3)], ids=["cold", "on caches"])
async def test_reviews_at_once_share_their_lists(*, is_cold: bool, kinds: int, lists: int) -> None:
    """On caches the first review continues, and lists again, while the others wait for the cordoned nodes."""
    async with running() as webhook:
        if is_cold:
            webhook.caches._informers = {}
        webhook.simulation.middleware.add(Rule(match=Match(verbs=("list",)), action=Delay(least=0.1, most=0.1)))
        webhook.recorder.exchanges.clear()
        denials = await asyncio.gather(*(webhook.create() for _ in range(50)))
        read = Counter(webhook.read)
    assert denials == [[]] * 50
    assert len(read) == kinds
    assert max(read.values()) == lists


async def test_change_of_the_cluster_reaches_the_caches() -> None:
    async with running() as webhook:
        name = await webhook.set_phase("Failed")
        await asyncio.sleep(SETTLE)
        [message] = await webhook.create()
        assert name in message


@pytest.mark.rule("admission: a denial rests on the latest state")
async def test_denial_rests_on_the_latest_state() -> None:
    async with running() as webhook:
        await webhook.set_phase("Failed")
        await asyncio.sleep(SETTLE)
        # From here the cache receives no more changes of Machines.
        webhook.caches._informers[listings.MACHINES].put = lambda _: None  # type: ignore[method-assign, assignment]
        await webhook.set_phase("Running")
        await asyncio.sleep(SETTLE)
        assert await webhook.create() == []
        assert "machines" in webhook.read


async def test_cordon_just_before_a_plan_denies_it() -> None:
    async with running() as webhook:
        # No event reaches the cache.
        webhook.caches._informers[listings.NODES].put = lambda _: None  # type: ignore[method-assign, assignment]
        await webhook.simulation.client().patch(NODES, "node-1", MergePatch({"spec": {"unschedulable": True}}))
        assert await webhook.create() == ["Node node-1 is cordoned. Uncordon it: kubectl uncordon node-1"]
        await webhook.simulation.client().patch(NODES, "node-1", MergePatch({"spec": {"unschedulable": False}}))
        assert await webhook.create() == []


async def test_objects_that_are_not_needed_are_left_out() -> None:
    async with running() as webhook:
        cached = await webhook.caches.reader()
        assert cached is not None
        volumes = await webhook.simulation.client().list(LONGHORN_VOLUMES)
        assert len(volumes.items) > 0
        assert await cached.list(listings.VOLUMES) == await webhook.live.list(listings.VOLUMES) == []


async def test_caches_are_not_read_while_a_watch_fails() -> None:
    async with running(machine_watches(Cut(seconds=20))) as webhook:
        webhook.simulation.middleware.add(machine_watches(Refuse(status=503)))
        await asyncio.sleep(30)
        assert await webhook.is_live()
        webhook.simulation.middleware.remove(machine_watches(Refuse(status=503)))
        await asyncio.sleep(60)
        assert not await webhook.is_live()


async def test_caches_are_not_read_without_permission_to_watch() -> None:
    async with running(Rule(match=Match(verbs=("watch",)), action=Refuse(status=403, reason="Forbidden"))) as webhook:
        assert await webhook.is_live()


@pytest.mark.rule("admission: no object is cached minutes after the last review")
@pytest.mark.full
async def test_caches_are_dropped_some_minutes_after_the_last_review() -> None:
    async with running() as webhook:
        await asyncio.sleep(KEEP - 2 * SETTLE)
        assert not await webhook.is_live()
        await asyncio.sleep(KEEP - 2 * SETTLE)
        assert not await webhook.is_live()
        await asyncio.sleep(KEEP + SETTLE)
        assert webhook.caches._informers == {}
        assert await webhook.is_live()
        await asyncio.sleep(SETTLE)
        assert not await webhook.is_live()


async def test_caches_survive_an_unexpected_error() -> None:
    failures = [ZeroDivisionError()]

    def slim(machine: Object) -> Object:
        if failures:
            raise failures.pop()
        return listings.MACHINES.slim(machine)

    async with running(large=[replace(listings.MACHINES, slim=slim)]) as webhook:
        assert failures == []
        await asyncio.sleep(KEEP + SETTLE)
        await webhook.create()
        await asyncio.sleep(SETTLE)
        assert webhook.caches.are_in_sync()


@pytest.mark.rule("admission: a review that takes too long denies before the API server's time-out")
@pytest.mark.parametrize("resource", ["nodes", "addons.*"])
async def test_cluster_that_stops_responding_denies_in_time(resource: str) -> None:
    async with running() as webhook:
        webhook.simulation.middleware.add(Rule(match=Match(resource=resource), action=Delay(least=3600, most=3600)))
        began = asyncio.get_running_loop().time()
        messages = await webhook.create()
        assert asyncio.get_running_loop().time() - began == DEADLINE
    assert any("cannot be made: the cluster was not read within" in message for message in messages)


async def test_cordoned_nodes_that_cannot_be_listed_are_read_live() -> None:
    async with running() as webhook:
        refusal = Rule(match=Match(resource="nodes"), action=Refuse(status=403, reason="Forbidden"))
        webhook.simulation.middleware.add(refusal)
        [*messages] = await webhook.create()
        assert any("list nodes" in message for message in messages)
