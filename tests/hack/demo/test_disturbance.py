"""Breaks of a running upgrade: the manager reports each, and the upgrade succeeds after the remedy."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hack.demo.commands import scale
from hack.demo.disturbance import TIMEOUT, Disturbances
from hack.demo.programs import DemoError
from hack.demo.remedies import SHOWN, Kubectl, does
from hack.demo.stalls import STALLS
from hack.scenario import load
from hack.simulation import Simulation
from tests.support.managers.sweep import cases
from tests.support.managers.upgrade import started
from upgrade_manager.display.screen import Lines
from upgrade_manager.kube.resources import CONFIG_MAPS, DEPLOYMENTS

if TYPE_CHECKING:
    from hack.demo.commands import Command
    from upgrade_manager.kube.client import Client

pytestmark = pytest.mark.full

#: Virtual seconds until a blocker must be there.
LATEST = 1900.0
CLEARED = "The blocker is cleared"
#: The others run in the full tier, but for every second one: the stall matrix and the screens of incidents have them.
FEW = {"suc"}


#: A machine without kubectl.
NONE = Kubectl(program="", kubeconfig=Path("kubeconfig"))


@dataclass(frozen=True, kw_only=True)
class Typed(Kubectl):
    """Records commands, and makes the changes of the demo's own commands that they stand for."""

    client: Client
    own: list[Command]
    texts: list[str] = field(default_factory=list)

    async def run(self, command: str) -> str:
        self.texts.append(command)
        for one in self.own:
            if does(command, one):
                await one.run(self.client)
        return ""


@pytest.mark.parametrize("name", cases(STALLS, default=FEW))
async def test_break_is_reported_and_mended(name: str) -> None:
    said: list[str] = []
    scenario = load("three-nodes").changed(operators=True)
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        typed = Typed(program="kubectl", kubeconfig=Path("kubeconfig"), client=stage.client, own=[])
        broken = Disturbances.of(
            [name], client=stage.client, screen=Lines(said.append), hold=False, rate=1.0, kubectl=typed
        )
        async with asyncio.timeout(LATEST):
            while CLEARED not in "".join(said):
                typed.own[:] = broken.items[0].remedy
                await broken.advance(await stage.plan())
                await asyncio.sleep(0.2)
        await stage.succeed()
    breaking, blocked, *added, _ = said
    assert breaking.startswith(f"\nBreaking ({name}): ")
    assert any(blocked.startswith(f"\nBlocked ({reason}): ") for reason in STALLS[name].reasons)
    report, _, mending = blocked.partition("\nMending (in 10 s")
    if stands_for := STALLS[name].stands_for:
        assert mending.startswith(f", in place of {stands_for}):\n")
        assert typed.texts == []
    else:
        how, *shown = mending.splitlines()
        assert how == ", with kubectl):"
        # As they stand in the blocker.
        assert all(line.strip() in report for line in shown)
        assert typed.texts == [line.strip() for line in (*shown, *"\n".join(added).splitlines())]


async def test_held_break_waits_for_the_user() -> None:
    said: list[str] = []
    scenario = load("three-nodes").changed(operators=True)
    async with Simulation(scenario) as simulation, started(simulation) as stage:
        broken = Disturbances.of(
            ["suc"], client=stage.client, screen=Lines(said.append), hold=True, rate=1.0, kubectl=NONE
        )
        for _ in range(600):
            await broken.advance(await stage.plan())
            await asyncio.sleep(0.2)
        assert [text.split()[0] for text in said] == ["Breaking", "Blocked"]
        remedy = "kubectl -n cattle-system scale deployment/system-upgrade-controller --replicas=1"
        assert said[-1].endswith(f"Mending (run this):\n  {remedy}")
        await scale(DEPLOYMENTS, "system-upgrade-controller", "cattle-system", 1).run(stage.client)
        await stage.succeed()


def plan_with(*reasons: str, node: str = "PreDraining", ended: bool = False) -> Any:
    """Build a plan with blockers of these reasons."""
    phases = ["ImagePreloading", "Succeeded"] if ended else ["ImagePreloading"]
    blocker = {"kind": "Pod", "name": "p", "message": "m", "remedy": "r", "since": "2026-01-02T03:04:05Z"}
    status = {
        "currentPhase": phases[-1],
        "phaseTransitionTimestamps": [{"phase": phase} for phase in phases],
        "nodeUpgradeStatuses": {"node-0": {"state": node}},
        "conditions": [{"type": "Progressing", "message": "Waiting for a Pod."}],
        "blockers": [blocker | {"reason": reason} for reason in reasons],
    }
    return {"metadata": {"name": "demo"}, "status": status}


async def after(seconds: float) -> None:
    """Wait until a deadline has passed: sums of times are rounded."""
    await asyncio.sleep(seconds + 0.001)


async def broken(client: Client, *names: str, said: list[str], hold: bool = False, rate: float = 1.0) -> Disturbances:
    """Break the upgrade."""
    found = Disturbances.of(names, client=client, screen=Lines(said.append), hold=hold, rate=rate, kubectl=NONE)
    await found.advance(plan_with())
    said.clear()
    return found


async def frozen(client: Client) -> list[str]:
    """Return the names of what is frozen."""
    return [one["data"]["frozen"] for one in (await client.list(CONFIG_MAPS, namespace="kube-system")).items]


@pytest.mark.parametrize("rate", [1.0, 10.0])
async def test_break_without_a_blocker_is_mended_after_a_limit(rate: float) -> None:
    said: list[str] = []
    async with Simulation("one-node") as simulation:
        breaks = await broken(simulation.client(), "scheduler", said=said, rate=rate)
        await after(TIMEOUT / rate)
        await breaks.advance(plan_with(node="PreDrained"))
        await asyncio.sleep(TIMEOUT / rate - 1)
        await breaks.advance(plan_with(node="PreDrained"))
        assert said == []
        await after(1)
        await breaks.advance(plan_with(node="PreDrained"))
        assert said[0].startswith("\nNo blocker of this break (scheduler) within 900 s. ImagePreloading: Waiting for")
        await after(SHOWN)
        await breaks.advance(plan_with(node="PreDrained"))
        assert await frozen(simulation.client()) == []


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("command", "error"),
    [
        pytest.param('test "$KUBECONFIG" = "$PWD/kubeconfig"', "", id="with the cluster's kubeconfig"),
        pytest.param("echo refused >&2; exit 3", "the remedy failed: echo refused >&2; exit 3\nrefused", id="fails"),
    ],
)
async def test_command_is_run_in_a_shell(tmp_path: Path, command: str, error: str) -> None:
    kubectl = Kubectl(program="kubectl", kubeconfig=tmp_path / "kubeconfig")
    with pytest.raises(DemoError) if error else contextlib.nullcontext() as found:
        await kubectl.run(command)
    assert (str(found.value) if found else "") == error
