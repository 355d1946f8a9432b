"""The net writes of the commands, from complete start states of v1.7.1, as listings that name the row of each line.

`GOLDEN=write python -m pytest tests/toolkit/test_net_writes.py` writes them again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.toolkit.cluster_upgrade import iso_of
from tests.support.toolkit.hosts import HOSTS, thirty_long_names
from tests.support.toolkit.net_write_goldens import golden
from tests.support.toolkit.os_upgrade import os_world, single_node_world
from tests.support.toolkit.start_state import (
    FROM_V1_6,
    INSTALLED,
    add_bond,
    complete,
    complete_from_v1_6,
    node_world,
    scenario,
)
from tests.support.toolkit.toolkit import NODE, ToolkitWorld, toolkit_world
from tests.support.toolkit.written_listing import written
from upgrade_manager.kube.client import Client
from upgrade_manager.release.migrations.addons import ADDONS as KNOWN

CLUSTER = "cluster-upgrade"
#: Makes a host.
Build = Callable[[ToolkitWorld], None]


class Start(NamedTuple):
    """A cluster before the upgrade."""

    name: str
    nodes: dict[str, Any]
    complete: Callable[[Client], Awaitable[None]] = complete
    #: Add-ons that a user has deleted.
    without: tuple[str, ...] = ()


STARTS = (
    Start("three-nodes", {"count": 3}),
    Start("two-and-a-witness", {"count": 3, "witness": (2,)}),
    Start("one-node", {"count": 1}, without=tuple(one.name for one in KNOWN)),
    Start("from-v1.6", {"count": 3}, complete=complete_from_v1_6),
)


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
async def test_net_writes_of_the_cluster(tmp_path: Path, start: Start) -> None:
    cluster = scenario(nodes=start.nodes, without=start.without)
    async with toolkit_world(tmp_path, iso_of(cluster), scenario=cluster, actors=True) as world:
        await start.complete(world.client)
        lines = await written(world, CLUSTER, on_host=False)
    assert lines == golden(f"{CLUSTER}-{start.name}", lines)


def installed(world: ToolkitWorld) -> None:
    """Make a host that v1.7.1 installed."""
    INSTALLED.write(world.tree.root)


def from_v1_6(world: ToolkitWorld) -> None:
    """Make a host that v1.7.1's own upgrade brought from v1.6, with a bond."""
    FROM_V1_6.write(world.tree.root)
    add_bond(world.tree.root)


@pytest.mark.parametrize("build", [installed, from_v1_6], ids=lambda build: build.__name__)
async def test_net_writes_of_a_node(tmp_path: Path, build: Build) -> None:
    async with node_world(tmp_path) as world:
        build(world)
        lines = await written(world, "node prepare")
        lines += await written(world, "node pre-drain")
        world.simulation.hosts.upgrade_kubelet(NODE, world.simulation.scenario.release.kubernetes)
        lines += await written(world, "node post-drain")
    assert lines == golden(f"node-{_name(build)}", lines)


@pytest.mark.parametrize(
    "build", [host for host in HOSTS if host is not thirty_long_names], ids=lambda one: one.__name__
)
async def test_net_writes_on_a_host(tmp_path: Path, build: Build) -> None:
    async with os_world(tmp_path) as world:
        INSTALLED.write(world.tree.root)
        build(world)
        lines = await written(world, "node post-drain")
    assert lines == golden(f"post-drain-{_name(build)}", lines)


async def test_net_writes_of_a_single_node(tmp_path: Path) -> None:
    async with single_node_world(tmp_path) as world:
        INSTALLED.write(world.tree.root)
        lines = await written(world, "node single-node-upgrade")
    assert lines == golden("single-node-upgrade", lines)


def _name(build: Build) -> str:
    return build.__name__.replace("_", "-").replace("v1-6", "v1.6")
