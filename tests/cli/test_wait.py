"""The command `upgrade-manager wait`, as a process with a kubeconfig; and the exit statuses of `status`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE
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
BLOCKER = {
    "reason": "DrainFailing",
    "kind": "PodDisruptionBudget",
    "namespace": "shop",
    "name": "db",
    "message": STALLED["message"],
    "remedy": "Add a replica to its workload",
    "since": STALLED["lastTransitionTime"],
}
HELD = {**status("NodeUpgrading", "Stalled: DrainFailing"), "conditions": [STALLED], "blockers": [BLOCKER]}
SUCCEEDED = status("Succeeded", "Succeeded")
FAILED = status("Failed", "Failed: NodeUpgradeFailed")


async def command(cluster: Served, *arguments: str) -> ProcessResult:
    return await result(await started(cluster, *arguments))


async def started(cluster: Served, *arguments: str) -> asyncio.subprocess.Process:
    name, *others = arguments
    return await manager(name, f"--kubeconfig={cluster.kubeconfig}", *others, home=cluster.kubeconfig.parent)


@pytest.mark.full
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


WATCH = ("status", "--watch", "--exit-code")
#: The state, the command, and its exit status.
EXITS: list[tuple[dict[str, Any], tuple[str, ...], int]] = [
    (RUNNING, ("status", "--exit-code"), 0),
    (RUNNING, (*WATCH, "--timeout=0s"), 124),
    (HELD, (*WATCH, "--timeout=0s"), 124),
    (HELD, (*WATCH, "--fail-on-stall"), 3),
    (HELD, ("wait", "--fail-on-stall"), 3),
    (HELD, ("wait", "--timeout=0s"), 124),
    (FAILED, (*WATCH, "--fail-on-stall", "--timeout=1h"), 1),
    (FAILED, ("wait",), 1),
    (FAILED, ("status", "--watch"), 0),
    (SUCCEEDED, WATCH, 0),
    (SUCCEEDED, ("wait", "--fail-on-stall", "--timeout=1h"), 0),
]


@pytest.mark.full
@pytest.mark.rule("status: --watch --exit-code has the exit statuses and the flags of wait")
async def test_watch_and_wait_have_the_same_exit_statuses(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        found = []
        for state, arguments, _ in EXITS:
            await cluster.set(**{"conditions": None, **state})
            found.append((state, arguments, (await command(cluster, *arguments)).code))
    assert found == EXITS


#: The script of the README, with a time-out that passes at once, and what it prints in each state.
SCRIPT = re.search(r"```bash\n(.*?)```", (Path(__file__).parents[2] / "README.md").read_text(), re.DOTALL)
PRINTED: list[tuple[dict[str, Any], str, int, str]] = [
    (SUCCEEDED, "12h", 0, "upgraded"),
    (FAILED, "12h", 1, "demo  Failed: NodeUpgradeFailed\nupgrade  "),
    (HELD, "12h", 3, "# DrainFailing: PodDisruptionBudget shop/db: it keeps Pod db-0"),
    (RUNNING, "0s", 124, "not ended after 12 h"),
]


@pytest.mark.full
@pytest.mark.rule("status: the script of the README acts by the exit status of wait")
async def test_script_of_the_readme_acts_by_the_exit_status(tmp_path: Path) -> None:
    assert SCRIPT is not None
    program = tmp_path / "upgrade-manager"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m upgrade_manager "$@"\n')
    program.chmod(0o755)
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.kubeconfig)}
        for state, limit, code, printed in PRINTED:
            await cluster.set(**{"conditions": None, "blockers": None, **state})
            script = SCRIPT[1].replace("to-v1.8.0", "demo").replace("--timeout 12h", f"--timeout {limit}")
            process = await asyncio.create_subprocess_exec("bash", "-c", script, env=environ, stdout=PIPE)
            out, _ = await process.communicate()
            assert (process.returncode, printed in out.decode()) == (code, True)


@pytest.mark.full
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
