"""The caBundle of a configuration that several replicas write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from hack.faults.rules import Delay, Match, Rule
from hack.simulation import Simulation
from tests.support.webhook.webhook_certificates import Replicas, new_pair
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import Resource
from webhook.certificates.ca_bundle import CONFIGURATIONS, CaBundle
from webhook.certificates.rotation import CONFIGURATION


@pytest.fixture
async def replicas() -> AsyncIterator[Replicas]:
    async with Simulation(actors=False) as simulation:
        yield Replicas(simulation)


def bundle_of(replicas: Replicas) -> CaBundle:
    return CaBundle(replicas.simulation.client(), name=CONFIGURATION)


async def test_concurrent_writes_lose_no_authority(replicas: Replicas) -> None:
    simulation = replicas.simulation
    await replicas.install()
    slow, fast = (new_pair(simulation.now()).authority for _ in range(2))
    simulation.middleware.add(Rule(match=Match(verbs=("patch",)), action=Delay(least=1, most=1)))
    bundle = CaBundle(Client(simulation.transport(), user_agent="slow", random=Random(1)), name=CONFIGURATION)
    writing = asyncio.create_task(bundle.publish([slow]))
    await asyncio.sleep(0.5)
    assert await bundle_of(replicas).publish([fast])
    with pytest.raises(Conflict):
        await writing
    assert await bundle.publish([slow])
    assert await replicas.bundles() == [slow + fast]


@pytest.mark.parametrize("webhooks", [None, []])
async def test_configuration_without_webhooks_is_left_alone(replicas: Replicas, webhooks: list[str] | None) -> None:
    await replicas.install()
    for kind, end in CONFIGURATIONS:
        patch = MergePatch({"webhooks": webhooks})
        await replicas.simulation.client().patch(kind, f"{CONFIGURATION}{end}", patch)
    assert not await bundle_of(replicas).publish([new_pair(replicas.now()).authority])


@pytest.mark.parametrize(
    "missing", [None, *CONFIGURATIONS], ids=["none", *(f"{kind.kind}{end}" for kind, end in CONFIGURATIONS)]
)
async def test_every_webhook_gets_the_authority_once(replicas: Replicas, missing: tuple[Resource, str] | None) -> None:
    await replicas.install("", "")
    if missing is not None:
        await replicas.simulation.client().delete(missing[0], f"{CONFIGURATION}{missing[1]}")
    authority, bundle = new_pair(replicas.now()).authority, bundle_of(replicas)
    assert [await bundle.publish([authority]) for _ in range(2)] == [True, False]
    left = [one for one in CONFIGURATIONS if one != missing]
    assert [await replicas.bundles(*one) for one in left] == [[authority, authority] for _ in left]
