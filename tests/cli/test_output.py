"""Each command for users where standard output has no size, lacks characters, or cannot be written."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.cluster.served import Served, environment, served
from tests.support.managers.displayed import MANIFEST, condition
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.cli.options import command_line
from upgrade_manager.cli.toolkit_options import JOB_COMMANDS
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

#: Command lines: those with a cluster, and those without one.
ONLINE = (
    *("check", "check -o json", "preflight", "status", "status -o json", "status -o yaml", "wait --timeout=0s"),
    *("pause demo node-1", "resume demo node-1", "pause demo", "continue demo", "remedies", "report -o -"),
    *("retry failed", "bundle demo -o /dev/null"),
)
OFFLINE = ("steps --from v1.7.1 --to v1.8.0", "completion bash", "--help", "--version", "status --help")
SERVICES = {"run", "webhook"}
#: A part of a phase's message that Latin-1 lacks.
ARROW = "v1.7.1 → v1.8.0"


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Served]:
    """Serve a cluster with a plan in progress."""
    async with served(folder) as running:
        await running.client.create(UPGRADE_PLANS, MANIFEST)
        await running.set(currentPhase="NodeUpgrading", conditions=[condition("Progressing", ARROW)])
        # A plan that has failed, for its next attempt.
        await running.client.create(UPGRADE_PLANS, MANIFEST | {"metadata": {"name": "failed"}})
        patch = MergePatch({"status": {"currentPhase": "Failed"}})
        await running.client.patch(UPGRADE_PLANS, "failed", patch, subresource="status")
        yield running


async def run(line: str, folder: Path, *, variables: dict[str, str], stdout: int = PIPE) -> ProcessResult:
    name, *arguments = line.split()
    if line in ONLINE:
        arguments.insert(0, f"--kubeconfig={folder / 'kubeconfig'}")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "upgrade_manager", name, *arguments),
        env=environment(folder) | variables,
        stdin=DEVNULL,
        stdout=stdout,
        stderr=PIPE,
    )
    out, err = await process.communicate()
    return ProcessResult(process.returncode or 0, (out or b"").decode("latin-1"), err.decode())


def test_every_command_is_tried() -> None:
    _, commands = command_line()
    tried = {line.split()[0] for line in (*ONLINE, *OFFLINE)}
    assert {*commands} - {*JOB_COMMANDS} - SERVICES == {name for name in tried if name[0] != "-"}


@pytest.mark.rule("status: on a terminal of no size, in Latin-1 and on a full disk no command ends in a traceback")
@pytest.mark.real_loop
@pytest.mark.full
async def test_terminal_without_size_and_characters_is_written(tmp_path: Path) -> None:
    variables = {"COLUMNS": "0", "LINES": "0", "PYTHONIOENCODING": "latin-1"}
    async with cluster(tmp_path):
        ended = {line: await run(line, tmp_path, variables=variables) for line in (*ONLINE, *OFFLINE)}
    assert [line for line, one in ended.items() if "Traceback" in one.err or one.err.count("\n") > 1] == []
    assert [line for line, one in ended.items() if not one.out] == ["remedies"]
    assert ended["status"].out.startswith("UpgradePlan  demo  Running\n")
    assert ARROW.replace("→", "?") in ended["status"].out


@pytest.mark.rule("status: on a terminal of no size, in Latin-1 and on a full disk no command ends in a traceback")
@pytest.mark.real_loop
@pytest.mark.full
async def test_full_disk_is_one_line(tmp_path: Path) -> None:
    disk = os.open("/dev/full", os.O_WRONLY)
    try:
        async with cluster(tmp_path):
            # Without a blocker, remedies writes nothing.
            lines = [line for line in (*ONLINE, *OFFLINE) if line != "remedies"]
            ended = {line: await run(line, tmp_path, variables={}, stdout=disk) for line in lines}
    finally:
        os.close(disk)
    assert {one.code for one in ended.values()} == {1}
    assert [line for line, one in ended.items() if not one.line.endswith(": No space left on device")] == []
