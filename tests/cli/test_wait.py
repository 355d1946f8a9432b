"""The command `upgrade-manager wait`, as a process with a kubeconfig; and the exit statuses of `status`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.served import Served, manager, result, served
from tests.support.managers.displayed import MANIFEST
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.kube.resources import UPGRADE_PLANS

pytestmark = pytest.mark.real_loop

STALLED = {
    "type": "Stalled",
    "status": "True",
    "reason": "DrainFailing",
    "message": "PodDisruptionBudget shop/db: it keeps Pod db-0",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def status(phase: str, state: str) -> dict[str, Any]:
    """Return the fields of a status."""
    return {"currentPhase": phase, "display": {"state": state, "transitioning": False, "error": False}}


RUNNING = status("NodeUpgrading", "Running")
HELD = {**status("NodeUpgrading", "Stalled: DrainFailing"), "conditions": [STALLED]}
SUCCEEDED = status("Succeeded", "Succeeded")
FAILED = status("Failed", "Failed: NodeUpgradeFailed")


async def command(cluster: Served, *arguments: str) -> ProcessResult:
    return await result(await started(cluster, *arguments))


async def started(cluster: Served, *arguments: str) -> asyncio.subprocess.Process:
    name, *others = arguments
    return await manager(name, f"--kubeconfig={cluster.kubeconfig}", *others, home=cluster.kubeconfig.parent)


@pytest.mark.rule(
    "status: a wait ends with status 0 after success, 1 after a failure, 3 if stalled, 124 after its time"
)
async def test_exit_status_shows_how_the_upgrade_ended(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        assert (await command(cluster, "wait")).line.endswith(": no UpgradePlan found")
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        await cluster.set(**HELD)
        found = await command(cluster, "wait", "demo", "--fail-on-stall")
        assert (found.code, found.err) == (3, "")
        found = await command(cluster, "wait", "--timeout=0s")
        late = "upgrade-manager: demo has not ended after 0 s: Stalled: DrainFailing\n"
        assert (found.code, found.err) == (124, late)
        assert [(await command(cluster, "status", *one)).code for one in ((), ("--exit-code",))] == [0, 3]
        process = await started(cluster, "wait", "--timeout=1h")
        assert process.stdout is not None
        await process.stdout.readuntil(b"plan demo: ")
        # Settings may be given back for long.
        await cluster.set(**FAILED, conditions=None, cleanupPending=True)
        out, err = await process.communicate()
        assert (process.returncode, err) == (1, b"")
        assert out.decode().splitlines()[-1].endswith("plan demo: Failed: NodeUpgradeFailed")
        await cluster.set(cleanupPending=None)
        assert (await command(cluster, "status", "--watch", "--exit-code")).code == 1
        await cluster.set(**SUCCEEDED)
        assert [(await command(cluster, name, "demo")).code for name in ("wait", "status")] == [0, 0]


@pytest.mark.rule("status: a wait for a plan that is deleted is one line, with exit status 1")
async def test_deleted_plan_ends_the_wait(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        await cluster.set(**RUNNING)
        process = await started(cluster, "wait")
        assert process.stdout is not None
        await process.stdout.readuntil(b"plan demo: ")
        await cluster.client.delete(UPGRADE_PLANS, "demo")
        _, err = await process.communicate()
        assert (process.returncode, err) == (1, b"upgrade-manager: demo was deleted\n")
