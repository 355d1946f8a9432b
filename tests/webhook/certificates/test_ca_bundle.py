"""The caBundle of a configuration that several replicas write."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from hack.faults.rules import Delay, Match, Rule
from hack.simulation import Simulation
from tests.support.webhook_certificates import Replicas, new_pair
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import VALIDATING_WEBHOOK_CONFIGURATIONS
from webhook.certificates.ca_bundle import CaBundle
from webhook.certificates.rotation import CONFIGURATION


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
        await simulation.client().patch(
            VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION, MergePatch({"webhooks": webhooks})
        )
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
