from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hack.actors.api_certificates import ApiCertificates
from hack.cluster.scenario import load
from hack.simulation import Simulation
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import ENDPOINT_SLICES

START = datetime(2026, 1, 1, tzinfo=UTC)
MAIN, OTHER, PORT = "10.53.0.1", "10.53.0.2", 443


def now() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())


def certificates(**values: Any) -> ApiCertificates:
    scenario = load("three-nodes").changed(api_servers={OTHER: values})
    return ApiCertificates(scenario, host=MAIN, port=PORT, now=now)


async def test_server_presents_its_certificate_and_its_ca() -> None:
    own, authority = await certificates(since_days=1, days=2, authority_days=3).read(OTHER, PORT)
    assert (own.not_before, own.not_after) == (START - timedelta(days=1), START + timedelta(days=2))
    assert authority.not_after == START + timedelta(days=3)


@pytest.mark.parametrize(
    ("host", "port", "values", "words", "seconds"),
    [
        pytest.param("10.0.0.9", PORT, {}, "Connection refused", 0, id="an address without a server"),
        pytest.param(OTHER, 6443, {}, "Connection refused", 0, id="another port"),
        pytest.param(OTHER, PORT, {"tls": False}, "TLS handshake failed", 0, id="no TLS"),
        pytest.param(OTHER, PORT, {"answers": False}, "TLS handshake timed out after 10 s", 10, id="silence"),
    ],
)
async def test_unreachable_server_raises_transient(
    host: str, port: int, values: dict[str, Any], words: str, seconds: float
) -> None:
    with pytest.raises(Transient, match=words):
        await certificates(**values).read(host, port)
    assert asyncio.get_running_loop().time() == seconds


async def test_server_responds_after_its_outage() -> None:
    shown = certificates(unreachable=15)
    for _ in range(2):
        with pytest.raises(Transient):
            await shown.read(OTHER, PORT)
    assert await shown.read(OTHER, PORT)


async def test_all_servers_are_endpoints_of_the_kubernetes_service() -> None:
    scenario = load("three-nodes").changed(api_servers={OTHER: {}, MAIN: {"days": 3}})
    async with Simulation(scenario, actors=False) as simulation:
        piece = await simulation.client().get(ENDPOINT_SLICES, "kubernetes", namespace="default")
        assert [endpoint["addresses"] for endpoint in piece["endpoints"]] == [[MAIN], [OTHER]]
        for endpoint in piece["endpoints"]:
            assert await simulation.certificates.read(endpoint["addresses"][0], piece["ports"][0]["port"])
