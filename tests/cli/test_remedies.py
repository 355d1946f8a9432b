"""The command `upgrade-manager remedies`, and commands copied from a screen of 80 columns into a shell."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.support.cluster.served import Served, environment, manager, result, served
from tests.support.managers import remedy_samples
from tests.support.managers.displayed import MANIFEST
from tests.support.programs.process_result import ProcessResult
from upgrade_manager.kube.resources import (
    UPGRADE_PLANS,
)

pytestmark = pytest.mark.real_loop

SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in ("bash", "zsh")
]
#: A word that a user would have to replace.
_PLACEHOLDER = re.compile(r"(?<=[ /=])[A-Z]{3,}(?= |$)")


async def printed(cluster: Served, command: str, *arguments: str) -> ProcessResult:
    home = cluster.kubeconfig.parent
    process = await manager(command, f"--kubeconfig={cluster.kubeconfig}", "demo", *arguments, home=home)
    return await result(process)


async def set_up(cluster: Served) -> None:
    await cluster.client.create(UPGRADE_PLANS, MANIFEST)
    await cluster.set(currentPhase="NodeUpgrading", blockers=[one.entry() for one in remedy_samples.blockers()])


def by_blocker(text: str) -> dict[str, list[str]]:
    """Return the lines below each blocker's message."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        named = re.search(r"Pod default/([a-z-]+): it does not start$", line)
        lines = found.setdefault(named[1], []) if named else lines
        lines.append(line)
    return {name: lines[1:] for name, lines in found.items()}


def commands(lines: list[str]) -> list[str]:
    known = [one for remedies in remedy_samples.remedies().values() for one in remedies]
    return [line for line in lines if line and line in {one.command for one in known}]


def undos(lines: list[str]) -> list[str]:
    return [line.removeprefix("# undo: ") for line in lines if line.startswith("# undo: ")]


async def in_shell(cluster: Served, shell: str, command: str, *options: str) -> ProcessResult:
    home = cluster.kubeconfig.parent
    variables = environment(home)
    # Tests may have their own programs beside the kubeconfig.
    variables |= {"KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{home}{os.pathsep}{variables['PATH']}"}
    process = await asyncio.create_subprocess_exec(
        *(shell, *options, "-c", command), env=variables, cwd=home, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    return await result(process)


@pytest.mark.full
@pytest.mark.rule("status: a command stands alone on its line, and is neither cut nor wrapped")
@pytest.mark.parametrize("shell", SHELLS)
async def test_each_printed_command_is_a_command(tmp_path: Path, shell: str) -> None:
    async with served(tmp_path) as cluster:
        await set_up(cluster)
        shown, listed = (
            by_blocker(one.out) for one in (await status_at_80(cluster), await printed(cluster, "remedies"))
        )
        expected = remedy_samples.remedies()
        for name, found in expected.items():
            for lines in (shown[name], listed[name]):
                assert commands(lines) == [one.command for one in found if one.command]
                assert undos(lines) == [one.undo for one in found if one.undo]
        for command in [one for lines in listed.values() for one in (*commands(lines), *undos(lines))]:
            assert not _PLACEHOLDER.search(command), command
            checked = await in_shell(cluster, shell, command, "-n")
            assert (checked.code, checked.err) == (0, ""), command


async def status_at_80(cluster: Served) -> ProcessResult:
    home = cluster.kubeconfig.parent
    program = (shutil.which("env") or "env", "COLUMNS=80")
    variables = environment(home)
    process = await asyncio.create_subprocess_exec(
        *(*program, sys.executable, "-m", "upgrade_manager", "status", f"--kubeconfig={cluster.kubeconfig}", "demo"),
        env=variables,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    return await result(process)


@pytest.mark.full
async def test_plan_that_nothing_holds_up_has_no_lines(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        await cluster.set(currentPhase="NodeUpgrading")
        found = await printed(cluster, "remedies")
        assert (found.code, found.out) == (0, "")
        assert "nothing holds it up" in found.err
        step = {"text": "Create a new plan", "command": "kubectl create -f plan.yaml"}
        await cluster.set(currentPhase="Failed", nextSteps=[step])
        failed, document = await printed(cluster, "remedies"), await printed(cluster, "remedies", "-ojson")
        assert failed.out == "# Create a new plan:\nkubectl create -f plan.yaml\n"
        assert json.loads(document.out) == {"plan": "demo", "blockers": [], "nextSteps": [step | {"undo": ""}]}


async def test_remedies_as_a_document(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        await set_up(cluster)
        documents = [json.loads((await printed(cluster, name, "-ojson")).out) for name in ("remedies", "status")]
        found, status = ({row["name"]: row["remedies"] for row in one["blockers"]} for one in documents)
        assert found == status
        assert [one["command"] for one in found["scaled-down"]] == [
            "kubectl -n default scale deploy/stopped --replicas=1"
        ]
        assert found["budget"][0] == {"text": "Add a replica to its workload", "command": "", "undo": ""}
