from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.cluster_upgrade import cluster_upgrade, services, services_world
from upgrade_manager.toolkit.charts.rancher import RANCHER, rancher_missing
from upgrade_manager.toolkit.charts.rancher_values import with_rows

WITNESS = {"count": 3, "witness": (2,)}


@pytest.mark.parametrize(
    ("nodes", "given", "wanted"),
    [
        pytest.param(WITNESS, -3, -2, id="witness"),
        pytest.param(WITNESS, -2, -2, id="done"),
        pytest.param(WITNESS, 3, 3, id="a-user's-number"),
        pytest.param({"count": 3}, -3, -3, id="no-witness"),
        pytest.param({"count": 4, "witness": (2,)}, -3, -3, id="four-nodes"),
        pytest.param({"count": 2, "witness": (1,)}, -3, -3, id="two-nodes"),
    ],
)
async def test_replicas_leave_the_witness_out(
    tmp_path: Path, nodes: dict[str, object], given: int, wanted: int
) -> None:
    async with services_world(tmp_path, nodes=nodes) as world:
        values = {"replicas": given, "tls": "external"}
        assert await with_rows(world.context(), values) == {"replicas": wanted, "tls": "external"}
        assert values["replicas"] == given


async def test_values_without_replicas_stay(tmp_path: Path) -> None:
    async with services_world(tmp_path, nodes=WITNESS) as world:
        assert await with_rows(world.context(), {}) == {}


async def test_cluster_with_a_witness_is_upgraded_once(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path, services(nodes=WITNESS)) as upgrade:
        await upgrade.run()
        values = await upgrade.world.context().helm.values(RANCHER)
        assert (values["replicas"], "turtles" in values["features"]) == (-2, False)
        assert await rancher_missing(upgrade.world.context()) == ""
        upgrade.kills.writes.clear()
        await upgrade.run()
        assert upgrade.kills.writes == []


async def test_values_of_the_previous_release_are_named(tmp_path: Path) -> None:
    async with cluster_upgrade(tmp_path, services(nodes=WITNESS, release={"rancher": "v2.13.1"})) as upgrade:
        assert await rancher_missing(upgrade.world.context()) == (
            "Helm release cattle-system/rancher has the previous release's values: features, replicas"
        )
