"""Breaks of a running upgrade: the manager reports each, and the upgrade succeeds after the remedy."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hack.demo.commands import scale
from hack.demo.disturbance import Disturbances
from hack.demo.stalls import STALLS
from hack.simulation import Simulation
from tests.support.upgrade import started
from upgrade_manager.display.screen import Lines
from upgrade_manager.kube.resources import DEPLOYMENTS

#: Virtual seconds until a blocker must be there.
LATEST = 1900.0
CLEARED = "The blocker is cleared"
#: The others run in the full tier.
FEW = {"kubelet", "no-pod", "suc"}
NAMES = [pytest.param(name, marks=() if name in FEW else pytest.mark.full) for name in STALLS]


@pytest.mark.parametrize("name", NAMES)
async def test_break_is_reported_and_mended(name: str) -> None:
    said: list[str] = []
    async with Simulation() as simulation, started(simulation) as stage:
        broken = Disturbances.of([name], client=stage.client, screen=Lines(said.append), hold=False)
        async with asyncio.timeout(LATEST):
            while CLEARED not in "".join(said):
                await broken.advance(await stage.plan())
                await asyncio.sleep(0.2)
        await stage.succeed()
    breaking, blocked, _ = said
    assert breaking.startswith(f"\nBreaking ({name}): ")
    assert any(blocked.startswith(f"\nBlocked ({reason}): ") for reason in STALLS[name].reasons)


def test_readme_lists_the_names() -> None:
    text = (Path(__file__).parents[3] / "README.md").read_text()
    assert ", ".join(f"`{name}`" for name in STALLS) in text


async def test_held_break_waits_for_the_user() -> None:
    said: list[str] = []
    async with Simulation() as simulation, started(simulation) as stage:
        broken = Disturbances.of(["suc"], client=stage.client, screen=Lines(said.append), hold=True)
        for _ in range(600):
            await broken.advance(await stage.plan())
            await asyncio.sleep(0.2)
        assert [text.split()[0] for text in said] == ["Breaking", "Blocked"]
        remedy = "kubectl scale -n cattle-system deployment/system-upgrade-controller --replicas=1"
        assert said[-1].endswith(f"Mending (run this):\n  {remedy}")
        await scale(DEPLOYMENTS, "system-upgrade-controller", "cattle-system", 1).run(stage.client)
        await stage.succeed()
