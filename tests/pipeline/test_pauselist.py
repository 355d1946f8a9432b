from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from upgrade_manager.pipeline.pauselist import enumerated, misnamed
from upgrade_manager.pipeline.selections import MANAGED_NODES

if TYPE_CHECKING:
    from tests.support.harvester import Harvester

SAID = "pauseNodes lists unknown node{} {}; ignored"


@pytest.mark.parametrize(
    ("listed", "unknown"),
    [
        pytest.param([], "", id="an empty list"),
        pytest.param(["n1", "n2"], "", id="names of nodes"),
        pytest.param(["n1", "n7"], "n7", id="a name that no node has"),
        pytest.param(["N1"], "N1", id="capitals count"),
        pytest.param([" n1"], " n1", id="blanks count"),
        pytest.param(["foreign"], "foreign", id="a node that Harvester does not manage"),
        pytest.param(
            [f"x{i:02}" for i in range(12)], ", ".join(f"x{i:02}" for i in range(10)) + " and 2 more", id="many"
        ),
    ],
)
async def test_a_name_that_holds_back_nobody_is_said(cluster: Harvester, listed: list[str], unknown: str) -> None:
    await cluster.nodes("n1", "n2")
    await cluster.nodes("foreign", **{"harvesterhci.io/managed": "false"})
    spec = {"version": "v1", "nodeUpgradeOption": {"pauseNodes": listed}}
    ctx = cluster.context(await cluster.plan(spec=spec))
    said = SAID.format("s" if "," in unknown else "", unknown) if unknown else ""
    assert misnamed(ctx, await ctx.watch(MANAGED_NODES)) == said
    words = " ".join(said.split())
    assert cluster.heard.said == ([("PauseNodesUnknown", words)] if unknown else [])


async def test_it_is_said_once_for_each_list(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    for number, listed in enumerate((["x"], ["x"], ["y", "x"], ["x", "y"])):
        spec = {"version": "v1", "nodeUpgradeOption": {"pauseNodes": listed}}
        raw = await cluster.plan(f"up-{number}", spec=spec)
        raw["metadata"] |= {"name": "up", "uid": "u"}
        ctx = cluster.context(raw)
        misnamed(ctx, await ctx.watch(MANAGED_NODES))
    first, second, third, fourth = cluster.heard.names
    assert first == second != third == fourth


def test_a_few_names_are_all_told() -> None:
    assert enumerated(["a", "b"]) == "a, b"
