"""The API servers' addresses, in virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from hack.simulation import Simulation
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import ENDPOINT_SLICES, NODES
from upgrade_manager.runtime.peers import Peers
from webhook.api_servers import INTERVAL, READ_TIMEOUT, RETRY, ApiServers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request, Response, Stream

SLICE, NODE_LIST = ENDPOINT_SLICES.path(namespace="default"), NODES.path()


def endpoints(*addresses: object) -> Object:
    return {"metadata": {"name": "kubernetes"}, "endpoints": [{"addresses": [one]} for one in addresses]}


def node(*addresses: str, **spec: object) -> Object:
    found = [{"type": "InternalIP", "address": one} for one in addresses]
    return {"metadata": {"name": "node"}, "spec": spec, "status": {"addresses": [{"type": "Hostname"}, *found]}}


class Lists:
    """A transport that responds with lists, or with a status; None hangs."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Object] | int | None] = {SLICE: [], NODE_LIST: []}
        self.requests: list[Request] = []

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        self.requests.append(request)
        found = self.lists[request.path]
        if found is None:
            await asyncio.sleep(1e6)
        body: Object
        status, body = (found, {}) if isinstance(found, int) else (200, {"items": found, "metadata": {}})
        yield _Stream(status, json.dumps(body).encode())

    async def send(self, request: Request) -> Response:
        raise NotImplementedError


class _Stream:
    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self._body = body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body


@asynccontextmanager
async def reading(lists: Lists) -> AsyncIterator[Peers]:
    peers = Peers()
    task = asyncio.create_task(ApiServers(Client(lists, user_agent="test", random=Random(0)), peers).run())
    await asyncio.sleep(0.1)
    try:
        yield peers
    finally:
        task.cancel()
        await asyncio.wait({task})


def shown(peers: Peers) -> set[str]:
    return {str(address) for address in peers.api_servers}


@pytest.mark.rule("security: connections are limited for each peer, and API servers go last")
@pytest.mark.parametrize(
    ("slices", "nodes", "expected"),
    [
        pytest.param([], [], set(), id="nothing"),
        pytest.param([endpoints("10.0.0.1", "10.0.0.2")], [], {"10.0.0.1", "10.0.0.2"}, id="endpoints"),
        pytest.param([endpoints("fd00::1", "api.example.com", 7)], [], {"fd00::1"}, id="IPv6, name and number"),
        pytest.param([], [node("10.0.0.3", "fd00::3")], {"10.0.0.3", "fd00::3"}, id="node"),
        pytest.param(
            [],
            [node(podCIDR="10.52.1.0/24", podCIDRs=["10.52.1.0/24", "fd00:52:1::/64"])],
            {"10.52.1.0", "10.52.1.1", "fd00:52:1::", "fd00:52:1::1"},
            id="tunnel",
        ),
        pytest.param([], [node(podCIDR="10.52.1.0/24")], {"10.52.1.0", "10.52.1.1"}, id="tunnel, one range"),
        pytest.param([], [node(podCIDRs=["10.52.1.7/32", "x", 7, None])], {"10.52.1.7"}, id="bad ranges"),
        pytest.param([{"endpoints": 1}], [{"status": {"addresses": [1]}}, node("x")], set(), id="other types"),
    ],
)
async def test_addresses_are_those_that_api_servers_connect_from(
    slices: list[Object], nodes: list[Object], expected: set[str]
) -> None:
    lists = Lists()
    lists.lists = {SLICE: slices, NODE_LIST: nodes}
    async with reading(lists) as peers:
        assert shown(peers) == expected


async def test_addresses_are_read_again() -> None:
    lists = Lists()
    async with reading(lists) as peers:
        assert shown(peers) == set()
        lists.lists[SLICE] = [endpoints("10.0.0.1")]
        await asyncio.sleep(INTERVAL)
        assert shown(peers) == {"10.0.0.1"}
        lists.lists[SLICE] = [endpoints("10.0.0.2")]
        await asyncio.sleep(INTERVAL)
        assert shown(peers) == {"10.0.0.2"}
    assert {dict(request.query).get("fieldSelector") for request in lists.requests} == {
        "metadata.name=kubernetes",
        None,
    }


@pytest.mark.parametrize("failure", [403, 404, 500, None])
async def test_failure_to_read_keeps_what_is_known(failure: int | None) -> None:
    lists = Lists()
    lists.lists = {SLICE: failure, NODE_LIST: [node("10.0.0.3")]}
    with capture_logs() as lines:
        async with reading(lists) as peers:
            await asyncio.sleep(10 * (READ_TIMEOUT + RETRY))
            assert shown(peers) == {"10.0.0.3"}
            warnings = [line for line in lines if line["log_level"] == "warning"]
            assert len(warnings) == 1
            assert "endpointslices" in warnings[0]["error"]
            lists.lists = {SLICE: [endpoints("10.0.0.1")], NODE_LIST: failure}
            await asyncio.sleep(2 * (READ_TIMEOUT + RETRY))
            assert shown(peers) == {"10.0.0.1", "10.0.0.3"}


async def test_addresses_of_a_simulated_cluster_are_found() -> None:
    async with Simulation(actors=False) as simulation:
        peers = Peers()
        assert await ApiServers(simulation.client(), peers).refresh() == ""
        addresses: list[dict[str, Any]] = [
            one
            for obj in (await simulation.client().list(NODES)).items
            for one in obj["status"]["addresses"]
            if one["type"] == "InternalIP"
        ]
    assert {one["address"] for one in addresses} <= shown(peers)
