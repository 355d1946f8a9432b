"""The API servers' addresses, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from hack.simulation import Simulation
from tests.support.server.kube_server import FedStream, Reply, ScriptedTransport, background, failure, success
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import ENDPOINT_SLICES, NODES
from upgrade_manager.kube.transport import Request
from upgrade_manager.runtime.peers import Peers
from webhook.api_servers import INTERVAL, READ_TIMEOUT, RETRY, ApiServers

SLICE, NODE_LIST = ENDPOINT_SLICES.path(namespace="default"), NODES.path()


def endpoints(*addresses: object) -> Object:
    return {"metadata": {"name": "kubernetes"}, "endpoints": [{"addresses": [one]} for one in addresses]}


def node(*addresses: str, **spec: object) -> Object:
    found = [{"type": "InternalIP", "address": one} for one in addresses]
    return {"metadata": {"name": "node"}, "spec": spec, "status": {"addresses": [{"type": "Hostname"}, *found]}}


#: Objects by path, or a status; None hangs.
Lists = dict[str, list[Any] | int | None]


def responding(lists: Lists) -> ScriptedTransport:
    """Respond with the lists, which may change."""

    def respond(request: Request) -> Reply:
        found = lists[request.path]
        if found is None:
            return FedStream()
        return failure(found) if isinstance(found, int) else success({"items": found, "metadata": {}})

    return ScriptedTransport(respond)


@asynccontextmanager
async def reading(transport: ScriptedTransport) -> AsyncIterator[Peers]:
    peers = Peers()
    async with background(ApiServers(Client(transport, user_agent="test", random=Random(0)), peers).run()):
        await asyncio.sleep(0.1)
        yield peers


def shown(peers: Peers) -> set[str]:
    return {str(address) for address in peers.api_servers}


V4, V6, TUNNEL = "10.52.1.0/24", "fd00:52:1::/64", {"10.52.1.0", "10.52.1.1"}


@pytest.mark.rule("security: connections are limited for each peer, and API servers go last")
@pytest.mark.parametrize(
    ("slices", "nodes", "expected"),
    [
        pytest.param([], [], set(), id="nothing"),
        pytest.param([endpoints("10.0.0.1", "10.0.0.2")], [], {"10.0.0.1", "10.0.0.2"}, id="endpoints"),
        pytest.param([endpoints("fd00::1", "api.example.com", 7)], [], {"fd00::1"}, id="IPv6, name and number"),
        pytest.param([], [node("10.0.0.3", "fd00::3")], {"10.0.0.3", "fd00::3"}, id="node"),
        pytest.param([], [node(podCIDR=V4, podCIDRs=[V4, V6])], TUNNEL | {"fd00:52:1::", "fd00:52:1::1"}, id="tunnel"),
        pytest.param([], [node(podCIDR=V4)], TUNNEL, id="tunnel, one range"),
        pytest.param([], [node(podCIDRs=["10.52.1.7/32", "x", 7, None])], {"10.52.1.7"}, id="bad ranges"),
        pytest.param([{"endpoints": 1}], [{"status": {"addresses": [1]}}, node("x")], set(), id="other types"),
    ],
)
async def test_addresses_are_those_that_api_servers_connect_from(
    slices: list[Object], nodes: list[Object], expected: set[str]
) -> None:
    async with reading(responding({SLICE: slices, NODE_LIST: nodes})) as peers:
        assert shown(peers) == expected


async def test_addresses_are_read_again() -> None:
    lists: Lists = {SLICE: [], NODE_LIST: []}
    transport = responding(lists)
    async with reading(transport) as peers:
        assert shown(peers) == set()
        for address in ("10.0.0.1", "10.0.0.2"):
            lists[SLICE] = [endpoints(address)]
            await asyncio.sleep(INTERVAL)
            assert shown(peers) == {address}
    assert {query.get("fieldSelector") for query in transport.queries} == {"metadata.name=kubernetes", None}


@pytest.mark.parametrize("failed", [403, 404, 500, None])
async def test_failure_to_read_keeps_what_is_known(failed: int | None) -> None:
    lists: Lists = {SLICE: failed, NODE_LIST: [node("10.0.0.3")]}
    with capture_logs() as lines:
        async with reading(responding(lists)) as peers:
            await asyncio.sleep(10 * (READ_TIMEOUT + RETRY))
            assert shown(peers) == {"10.0.0.3"}
            [warning] = [line for line in lines if line["log_level"] == "warning"]
            assert "endpointslices" in warning["error"]
            lists |= {SLICE: [endpoints("10.0.0.1")], NODE_LIST: failed}
            await asyncio.sleep(2 * (READ_TIMEOUT + RETRY))
            assert shown(peers) == {"10.0.0.1", "10.0.0.3"}


async def test_addresses_of_a_simulated_cluster_are_found() -> None:
    async with Simulation(actors=False) as simulation:
        peers = Peers()
        assert await ApiServers(simulation.client(), peers).refresh() == ""
        nodes = (await simulation.client().list(NODES)).items
    addresses = [one for obj in nodes for one in obj["status"]["addresses"] if one["type"] == "InternalIP"]
    assert {one["address"] for one in addresses} <= shown(peers)
