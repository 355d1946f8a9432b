"""When the simulated API server goes down with the machines that it runs on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.simulation import Simulation
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import NODES


def scenario(count: int, management: int, *witness: int) -> Any:
    return scenarios.parse(
        {"name": "some", "nodes": {"count": count, "management": management, "witness": list(witness)}}, origin="some"
    )


async def answers(simulation: Simulation) -> bool:
    try:
        async with asyncio.timeout(0.2):
            await simulation.client().list(NODES)
    except (Transient, TimeoutError):
        return False
    return True


@pytest.mark.parametrize(
    ("nodes", "down", "left"),
    [
        pytest.param((1, 1), ["node-0"], False, id="the only node"),
        pytest.param((2, 1), ["node-0"], False, id="the management node of two"),
        pytest.param((2, 1), ["node-1"], True, id="the worker of two"),
        pytest.param((3, 3), ["node-1"], True, id="one of three"),
        pytest.param((3, 3, 2), ["node-2"], True, id="the witness of three"),
        pytest.param((3, 3), ["node-1", "node-2"], False, id="two of three"),
        pytest.param((5, 3), ["node-3", "node-4"], True, id="all workers"),
    ],
)
async def test_api_server_is_down_without_quorum(
    nodes: tuple[int, ...],
    down: list[str],
    left: bool,  # noqa: FBT001  # a table
) -> None:
    async with Simulation(scenario(*nodes), scale=100) as simulation:
        for name in down:
            simulation.hosts.power_off(name)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert await answers(simulation) == left
        for name in down:
            simulation.hosts.power_on(name)
        await asyncio.sleep(1)
        assert await answers(simulation)
