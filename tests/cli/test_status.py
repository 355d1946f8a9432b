"""The command `upgrade-manager status`, as a process with a kubeconfig and in this one."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from asyncio.subprocess import PIPE
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
import yaml
from rich.console import Console

from tests.support.cluster.served import manager, result, served
from tests.support.managers.displayed import MANIFEST
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.api.keys import HARVESTER_SYSTEM, LEASE
from upgrade_manager.cli import status
from upgrade_manager.cli.status_watch import PlanWatch
from upgrade_manager.display.screen import Report
from upgrade_manager.kube.resources import LEASES, UPGRADE_PLANS
from upgrade_manager.runtime.lease import held_lease, new_lease


async def start(kubeconfig: Path, *arguments: str, stdout: int = PIPE) -> asyncio.subprocess.Process:
    return await manager("status", f"--kubeconfig={kubeconfig}", *arguments, home=kubeconfig.parent, stdout=stdout)


async def command(kubeconfig: Path, *arguments: str) -> ProcessResult:
    return await result(await start(kubeconfig, *arguments))


@pytest.mark.rule(
    "status: a missing plan or missing access is one line, with exit status 1",
    "status: a watch ends with its plan, or with status 1 when that is deleted",
)
@pytest.mark.real_loop
@pytest.mark.full
async def test_status_is_printed_in_each_format(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        assert (await command(cluster.kubeconfig)).line.endswith(": no UpgradePlan found")
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        await cluster.set(currentPhase="Initializing")
        missing = await command(cluster.kubeconfig, "nope")
        assert missing.line.endswith(": UpgradePlan nope not found. Run kubectl get upgradeplans")
        assert missing.code == 1
        table, document, text = [
            await command(cluster.kubeconfig, *arguments) for arguments in ([], ["demo", "-ojson"], ["demo", "-oyaml"])
        ]
        assert [(one.code, one.err) for one in (table, document, text)] == [(0, "")] * 3
        assert re.match(r"UpgradePlan +demo  Running\n", table.out)
        found = [json.loads(document.out), yaml.safe_load(text.out)]
        assert [(one["plan"], one["phase"]) for one in found] == [("demo", "Initializing")] * 2
        process = await start(cluster.kubeconfig, "-w", "-ojson")
        assert process.stdout is not None
        await process.stdout.readuntil(b"\n}\n")
        await cluster.client.delete(UPGRADE_PLANS, "demo")
        # The watch may have shown the plan again before the deletion.
        _, err = await process.communicate()
        assert (process.returncode, err) == (1, b"upgrade-manager: UpgradePlan demo was deleted\n")


@pytest.mark.full
@pytest.mark.real_loop
async def test_watch_on_a_pipe_ends_with_the_plan(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        process = await start(cluster.kubeconfig, "--watch")
        assert process.stdout is not None
        await process.stdout.readuntil(b"ImageCleanup")
        await cluster.set(currentPhase="Failed", nodeUpgradeStatuses={"node-0": {"state": "PreDrainFailed"}})
        out, err = await process.communicate()
        assert (process.returncode, err) == (0, b"")
        assert [line[10:] for line in out.decode().splitlines()[-2:]] == [
            "node node-0: PreDrainFailed",
            "plan demo: Failed",
        ]


@pytest.mark.rule("status: Ctrl-C ends a watch with status 0 and restores the terminal")
@pytest.mark.real_loop
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.thin
async def test_signal_ends_a_watch_and_restores_the_cursor(tmp_path: Path, number: signal.Signals, code: int) -> None:
    terminal, output = os.openpty()
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        process = await start(cluster.kubeconfig, "--watch", stdout=output)
        shown = ""
        while "ImageCleanup" not in shown:
            shown += (await asyncio.to_thread(os.read, terminal, 4096)).decode()
        process.send_signal(number)
        _, err = await process.communicate()
    os.close(output)
    shown += os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert (process.returncode, err) == (code, b"")
    assert "\x1b[?25l" in shown.partition("\x1b[?25h")[0]
    assert "\x1b[?25l" not in shown.rpartition("\x1b[?25h")[2]


@pytest.mark.full
@pytest.mark.rule(
    "status: a plan without a leader is said first, and a plan that has ended needs none",
    "status: a Lease that is absent or may not be read is said, and the command succeeds",
)
@pytest.mark.real_loop
async def test_lease_is_read_with_the_plan(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        absent = await command(cluster.kubeconfig)
        assert absent.code == 0
        assert "It is unknown whether a manager leads: lease harvester-system/" in absent.out
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        lease = new_lease(LEASE, namespace=HARVESTER_SYSTEM, identity="pod-a_1", now=long_ago)
        lease = await cluster.client.create(LEASES, lease)
        for line in ((await command(cluster.kubeconfig)).out, (await result(await wait(cluster.kubeconfig))).out):
            assert "No manager leads, so the upgrade stands still: pod-a last renewed its lease " in line
        document = json.loads((await command(cluster.kubeconfig, "-ojson")).out)
        assert (document["leader"]["state"], document["leader"]["holder"]) == ("None", "pod-a")
        await cluster.client.update(LEASES, held_lease(lease, identity="pod-b_1", now=datetime.now(UTC)))
        lines = (await command(cluster.kubeconfig)).out.splitlines()
        assert lines[0].startswith("UpgradePlan")
        assert [line.split() for line in lines if line.startswith("leader")] == [["leader", "pod-b"]]


async def wait(kubeconfig: Path) -> asyncio.subprocess.Process:
    return await manager("wait", f"--kubeconfig={kubeconfig}", "--timeout=0s", home=kubeconfig.parent)


class EndlessWatch:
    async def follow(self, _: object, **__: object) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return bool(await asyncio.get_running_loop().create_future())


@pytest.mark.rule("status: Ctrl-C ends a watch with status 0 and restores the terminal")
@pytest.mark.real_loop
async def test_second_ctrl_c_does_not_interrupt_the_end() -> None:
    watch = cast("PlanWatch", EndlessWatch())
    try:
        ended = await asyncio.create_task(interrupted_again(watch))
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
    assert ended


async def interrupted_again(watch: PlanWatch) -> bool:
    """Follow the plan until Ctrl-C, and press it again while the connections are closed."""
    await status.follow(watch, Report(Console(quiet=True)), name="demo")
    os.kill(os.getpid(), signal.SIGINT)
    # Until the loop has read the signal.
    await asyncio.to_thread(lambda: None)
    await asyncio.sleep(0)
    return True
