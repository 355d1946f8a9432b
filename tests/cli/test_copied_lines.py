"""An operator at a terminal of 80 columns copies the lines of the screen into a shell, and the upgrade goes on."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hack import virtual_time
from hack.apiserver.identity import ADMIN
from hack.cluster.gateway import Gateway
from hack.control_plane.certificates import Authority, server_context
from tests.support.cluster.served import environment, kubeconfig_of
from tests.support.managers.incident_screens import assert_screens, on_terminal
from tests.support.managers.incident_table import INCIDENTS
from tests.support.managers.incidents import held_up, taken
from tests.support.managers.sweep import every_second
from tests.support.managers.upgrade import UpgradeRun
from tests.support.programs.virtctl import install_virtctl
from upgrade_manager.api.phases import SUCCEEDED
from upgrade_manager.display.model import View
from upgrade_manager.kube import objects

#: By beginning: commands of screens that are not run here, and why.
NOT_RUN = {
    "kubectl edit ": "it opens an editor",
    "crictl ": "it runs on a node",
    "/var/lib/rancher/rke2/bin/ctr ": "it runs on a node",
    "journalctl ": "it runs on a node",
    "systemctl ": "it runs on a node",
    "tail ": "it runs on a node",
    "touch ": "it runs on a node",
    "curl ": "it runs on a node, for the server of the ISO",
    "upgrade-manager ": "tests/cli/test_check.py, test_remedies.py and test_retry.py run it",
    "kubectl -n harvester-system describe deployment harvester-upgrade-manager": "the manager here is not a Deployment",
}
#: By beginning: commands that show an error, which is what they are for.
FAILING = (
    "kubectl create job -n cattle-system trial ",
    "kubectl -n harvester-system rollout status deploy/virt-controller ",
)
#: By incident: why the upgrade does not succeed here.
NOT_MENDED = {
    "machine": "the simulated cluster does not replace a Machine",
    "failed-iso": "the simulated server of the ISO stays broken",
    "failed-disk": "the simulated disk stays full",
}
#: Always in the full tier, which has every second one of the others, too.
FEW = {"unschedulable", "failed-os"}
#: Their commands have quotes and substitutions, which shells may read differently.
QUOTING = {"pdb", "webhook", "hook-foreign", "volume", "repository", "paused"}
CASES = [
    pytest.param(
        name,
        shell,
        marks=[
            *([] if name in FEW else [every_second(number)]),
            pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed"),
        ],
    )
    for number, name in enumerate(INCIDENTS)
    for shell in ("bash", "zsh")
    if shell == "bash" or name in FEW | QUOTING
]
#: Real seconds after which a command, or the loop that waits for one, is stuck; other programs may be busy.
TIMEOUT = 120.0


@dataclass(frozen=True, kw_only=True)
class Shell:
    """A user's shell in front of the cluster, whose time stands still while a command runs."""

    program: str
    home: Path
    kubeconfig: Path

    async def run(self, line: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(self._run, line)

    def _run(self, line: str) -> subprocess.CompletedProcess[str]:
        variables = environment(self.home)
        return subprocess.run(  # noqa: S603  # the line of a screen
            [self.program, "-c", line],
            env=variables | {"KUBECONFIG": str(self.kubeconfig), "PATH": f"{self.home}:{variables['PATH']}"},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )


@asynccontextmanager
async def shell_at(run: UpgradeRun, program: str, folder: Path) -> AsyncIterator[Shell]:
    server, kubeconfig = run.simulation.server, folder / "kubeconfig"
    install_virtctl(folder)
    server.authenticator.register("a-secret-token", ADMIN)
    tls = server_context(Authority(now=datetime.now(UTC)).server(), folder)
    async with Gateway(server, tls=tls) as gateway:
        kubeconfig.write_text(kubeconfig_of(gateway.url))
        kubeconfig.chmod(0o600)
        yield Shell(program=program, home=folder, kubeconfig=kubeconfig)


def copied(view: View) -> Iterator[str]:
    """Yield the lines of the screen of 80 columns that are commands: those below a comment."""
    is_step = False
    for line in on_terminal(view, 80, 24).splitlines():
        if is_step and not line.startswith("#"):
            yield line
        is_step = line.startswith("# ") and line.endswith(":")


def undos(view: View) -> list[str]:
    lines = on_terminal(view, 80, 24).splitlines()
    return [line.removeprefix("# undo: ") for line in lines if line.startswith("# undo: ")]


async def run_all(shell: Shell, lines: list[str]) -> None:
    for line in lines:
        if line.startswith(tuple(NOT_RUN)):
            continue
        ran = await shell.run(line)
        assert (ran.returncode == 0) != line.startswith(FAILING), (line, ran.stdout, ran.stderr)


@pytest.mark.full
@pytest.mark.rule(
    "status: a command stands alone on its line, and is neither cut nor wrapped",
    "blockers: the commands on a screen of 80 columns end what holds the upgrade up",
)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize(("name", "shell"), CASES)
async def test_upgrade_goes_on_after_the_lines_of_its_screen(
    name: str, shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual_time, "STUCK_AFTER", TIMEOUT)
    incident = INCIDENTS[name]
    async with AsyncExitStack() as stack:
        run = await stack.enter_async_context(held_up(incident))
        snapshot = await taken(run)
        assert_screens(name, snapshot)
        view = snapshot.view
        lines = list(copied(view))
        remedies = [*(view.blockers[0].remedies if view.blockers else ()), *view.next_steps]
        known = [one.command for one in remedies if one.command]
        # Those of further blockers follow where they fit.
        assert lines[: len(known)] == known
        prompt = await stack.enter_async_context(shell_at(run, shell, tmp_path))
        # The cause of a failure is mended before the line that retries.
        if view.next_steps:
            await incident.by_hand(run)
        await run_all(prompt, [*view.leader.commands, *lines])
        if not view.next_steps:
            await incident.by_hand(run)
        if incident.is_dead:
            await stack.enter_async_context(run.life(seed="another manager"))
        if name not in NOT_MENDED:
            if view.next_steps:
                await run.until_plan(lambda plan: objects.status(plan).get("attempt") == 2)
            assert await run.until_ended() == SUCCEEDED
            await run.settle()
        await run_all(prompt, undos(view))


def test_exemptions_are_of_incidents() -> None:
    assert {*NOT_MENDED, *FEW, *QUOTING} <= set(INCIDENTS)
