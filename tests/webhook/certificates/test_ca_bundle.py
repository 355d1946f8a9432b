"""The caBundle of a configuration that several replicas write."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

from hack.faults.rules import Delay, Match, Rule
from hack.simulation import Simulation
from tests.support.webhook.webhook_certificates import Replicas, new_pair
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from webhook.certificates.ca_bundle import KINDS, CaBundle
from webhook.certificates.rotation import CONFIGURATION

if TYPE_CHECKING:
    from upgrade_manager.kube.resources import Resource


async def test_concurrent_writes_lose_no_authority() -> None:
    async with Simulation(actors=False) as simulation:
        replicas = Replicas(simulation)
        await replicas.install()
        slow, fast = (new_pair(simulation.now()).authority for _ in range(2))
        simulation.middleware.add(Rule(match=Match(verbs=("patch",)), action=Delay(least=1, most=1)))
        bundle = CaBundle(Client(simulation.transport(), user_agent="slow", random=Random(1)), name=CONFIGURATION)
        writing = asyncio.create_task(bundle.publish([slow]))
        await asyncio.sleep(0.5)
        assert await CaBundle(simulation.client(), name=CONFIGURATION).publish([fast])
        with pytest.raises(Conflict):
            await writing
        assert await bundle.publish([slow])
        assert await replicas.bundles() == [slow + fast]


@pytest.mark.parametrize("webhooks", [None, []])
async def test_configuration_without_webhooks_is_left_alone(webhooks: list[str] | None) -> None:
    async with Simulation(actors=False) as simulation:
        replicas = Replicas(simulation)
        await replicas.install()
        for kind in KINDS:
            await simulation.client().patch(kind, CONFIGURATION, MergePatch({"webhooks": webhooks}))
        bundle = CaBundle(simulation.client(), name=CONFIGURATION)
        assert not await bundle.publish([new_pair(simulation.now()).authority])


async def test_second_publication_writes_nothing() -> None:
    async with Simulation(actors=False) as simulation:
        replicas = Replicas(simulation)
        await replicas.install("", "")
        bundle = CaBundle(simulation.client(), name=CONFIGURATION)
        authority = new_pair(simulation.now()).authority
        assert [await bundle.publish([authority]) for _ in range(2)] == [True, False]
        assert await replicas.bundles() == [authority, authority]


async def test_both_configurations_get_the_authority() -> None:
    async with Simulation(actors=False) as simulation:
        replicas = Replicas(simulation)
        await replicas.install()
        bundle = CaBundle(simulation.client(), name=CONFIGURATION)
        authority = new_pair(simulation.now()).authority
        assert await bundle.publish([authority])
        assert [await replicas.bundles(kind) for kind in KINDS] == [[authority]] * len(KINDS)


@pytest.mark.parametrize("missing", KINDS, ids=lambda kind: kind.kind)
async def test_one_configuration_is_written_without_the_other(missing: Resource) -> None:
    async with Simulation(actors=False) as simulation:
        replicas = Replicas(simulation)
        await replicas.install()
        await simulation.client().delete(missing, CONFIGURATION)
        bundle = CaBundle(simulation.client(), name=CONFIGURATION)
        authority = new_pair(simulation.now()).authority
        assert [await bundle.publish([authority]) for _ in range(2)] == [True, False]
        assert [await replicas.bundles(kind) for kind in KINDS if kind != missing] == [[authority]]
