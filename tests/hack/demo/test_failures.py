"""Failures of a running upgrade: the demo causes each, retries the plan, and shows the next attempt."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hack.demo.disturbance import Disturbances
from hack.demo.failures import FAILURES
from hack.demo.remedies import SHOWN, Kubectl
from hack.simulation import Simulation
from tests.support.managers.upgrade import UpgradeRun, started
from upgrade_manager.api.attempts import attempt_of
from upgrade_manager.display.screen import Lines
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.full
RETRY = "upgrade-manager retry upgrade"


@dataclass(frozen=True, kw_only=True)
class Retrying(Kubectl):
    """Requests the attempt as the command does."""

    stage: UpgradeRun
    texts: list[str] = field(default_factory=list)

    async def run(self, command: str) -> str:
        self.texts.append(command)
        await self.stage.patch(spec={"attempt": 2})
        return "Attempt 2 goes on"


def _breaking(stage: UpgradeRun, name: str, said: list[str], *, hold: bool) -> tuple[Retrying, Disturbances]:
    kubectl = Retrying(program="kubectl", kubeconfig=Path("kubeconfig"), stage=stage)
    screen = Lines(said.append, now=stage.simulation.now)
    broken = Disturbances.of([name], client=stage.client, screen=screen, hold=hold, rate=1.0, kubectl=kubectl)
    return kubectl, broken


async def _until_failed(stage: UpgradeRun, broken: Disturbances) -> None:
    while objects.status(await stage.plan()).get("currentPhase") != "Failed":
        await broken.advance(await stage.plan())
        await asyncio.sleep(0.2)


def _has_begun(plan: Object) -> bool:
    return attempt_of(plan["status"]) > 1


@pytest.mark.parametrize("name", FAILURES)
async def test_failed_upgrade_is_retried(name: str) -> None:
    said: list[str] = []
    async with Simulation() as simulation, started(simulation) as stage:
        kubectl, broken = _breaking(stage, name, said, hold=False)
        await _until_failed(stage, broken)
        failed = asyncio.get_running_loop().time()
        plan = await stage.plan()
        while not kubectl.texts:
            assert broken.goes_on(plan)
            await broken.advance(plan)
            await asyncio.sleep(0.2)
        assert asyncio.get_running_loop().time() - failed >= SHOWN
        # The request is sent once, although the plan of a watch is a moment old.
        await broken.advance(plan)
        assert broken.goes_on(plan)
        await stage.until_plan(_has_begun)
        plan = await stage.succeed()
        await broken.advance(plan)
    assert not broken.goes_on(plan)
    breaking, failing, retried = said
    assert breaking.startswith(f"\nBreaking ({name}): {FAILURES[name].what}\n  kubectl patch ")
    assert failing == f"\nFailed. Retrying (in 10 s):\n  {RETRY}"
    assert (retried, kubectl.texts) == ("\nAttempt 2 goes on", [RETRY])
    assert [one["attempt"] for one in plan["status"]["attempts"]] == [1, 2]


async def test_user_retries_with_hold() -> None:
    said: list[str] = []
    async with Simulation() as simulation, started(simulation) as stage:
        kubectl, broken = _breaking(stage, "failed-node", said, hold=True)
        await _until_failed(stage, broken)
        for _ in range(600):
            await broken.advance(await stage.plan())
            await asyncio.sleep(0.2)
        assert broken.goes_on(await stage.plan())
        assert (said[-1], kubectl.texts) == (f"\nFailed. Retrying (run this):\n  {RETRY}", [])
        await stage.patch(spec={"attempt": 2})
        await broken.advance(await stage.until_plan(_has_begun))
        assert not broken.goes_on(await stage.succeed())
