"""`upgrade-manager status --watch` in a real terminal."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.cluster.served import environment, served
from tests.support.managers.displayed import ALLOW, DISALLOW, MANIFEST, running_plan
from tests.support.programs.polling import eventually
from tests.support.programs.programs import install
from upgrade_manager.cli.user_options import SHELLS
from upgrade_manager.kube.resources import UPGRADE_PLANS

#: Seconds until something is expected on the terminal.
TIMEOUT = 60.0


class Tmux:
    """A session with one window, on a server that the test owns."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def lines(self) -> list[str]:
        """Return the lines on the terminal; those that the terminal wrapped are joined."""
        text = await self._tmux("capture-pane", "-p", "-J")
        return [line.rstrip() for line in text.splitlines()]

    async def press(self, *keys: str) -> None:
        """Press keys, such as C-c."""
        await self._tmux("send-keys", "--", *keys)

    async def until(self, condition: Callable[[str], bool]) -> list[str]:
        """Wait until the text on the terminal meets the condition, and return its lines."""
        lines: list[str] = []

        async def is_shown() -> bool:
            lines[:] = await self.lines()
            return condition("\n".join(lines))

        await eventually(is_shown, seconds=TIMEOUT)
        return lines

    async def _tmux(self, *arguments: str) -> str:
        program = shutil.which("tmux") or "tmux"
        process = await asyncio.create_subprocess_exec(
            *(program, "-S", str(self._socket), "-f", "/dev/null", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, out.decode()
        return out.decode()


@asynccontextmanager
async def terminal(
    command: Sequence[str], *, width: int, height: int, environment: Mapping[str, str]
) -> AsyncIterator[Tmux]:
    """Run a command in a terminal, which then shows its exit status."""
    # A socket's path may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="tmux-") as folder:
        session = Tmux(Path(folder) / "socket")
        variables = [f"{name}={value}" for name, value in environment.items() if name != "TERM"]
        # The test's own terminal may have a size, which its environment would pass on.
        shell = f'env -u LINES -u COLUMNS {shlex.join([*variables, *command])}; echo "status $?"; exec cat'
        await session._tmux("new-session", "-d", "-x", str(width), "-y", str(height), shell)
        try:
            yield session
        finally:
            await session._tmux("kill-server")


pytestmark = [pytest.mark.display, pytest.mark.real_loop]
HEADINGS = ("UpgradePlan", "upgrade  ", "progress", "BLOCKERS", "NODE  ", "   PHASE")


@pytest.mark.rule("status: nothing wraps in terminals of 80 and 200 columns, and Ctrl-C leaves the last display")
@pytest.mark.parametrize("width", [80, 200])
async def test_watch_fits_the_terminal_and_ends_with_ctrl_c(tmp_path: Path, width: int) -> None:
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        await cluster.set(**running_plan()["status"])
        command = [sys.executable, "-m", "upgrade_manager", "status", "-w", f"--kubeconfig={cluster.kubeconfig}"]
        async with terminal(command, width=width, height=50, environment=environment(tmp_path)) as session:
            shown = await session.until(lambda text: ALLOW in text and "ImageCleanup" in text)
            # Lines that the terminal has wrapped are joined, as in a copy.
            assert {line for line in shown if len(line) > width} <= {ALLOW, f"# undo: {DISALLOW}"}
            assert ALLOW in shown
            starts = [next(i for i, line in enumerate(shown) if line.startswith(heading)) for heading in HEADINGS]
            assert starts == sorted(starts)
            # Redrawn in place: one display, however long it goes on.
            await cluster.set(currentPhase="NodeUpgrading", previousVersion="v1.7.2")
            shown = await session.until(lambda text: "v1.7.2" in text)
            assert sum(line.startswith("UpgradePlan") for line in shown) == 1
            await session.press("C-c")
            ended = await session.until(lambda text: "status " in text)
    assert [line for line in ended if line][-1] == "status 0"
    assert sum(line.startswith("UpgradePlan") for line in ended) == 1
    assert "Traceback" not in "".join(ended)


#: By shell: how it starts without a user's settings, and what loads the completion.
SHELLS_AND_SET_UPS = {
    "bash": (["bash", "--norc"], "source <(upgrade-manager completion bash)"),
    "zsh": (["zsh", "-f"], 'autoload -U compinit; compinit -D; eval "$(upgrade-manager completion zsh)"'),
    "fish": (["fish", "--no-config"], "upgrade-manager completion fish | source"),
}


@pytest.mark.parametrize("shell", SHELLS)
async def test_tab_completes_in_a_shell(tmp_path: Path, shell: str) -> None:
    install("upgrade-manager", tmp_path)
    command, set_up = SHELLS_AND_SET_UPS[shell]
    variables = environment(tmp_path)
    variables["PATH"] = f"{tmp_path}:{variables['PATH']}"
    async with terminal(command, width=100, height=20, environment=variables) as session:
        await session.press(f"{set_up}; echo re''ady", "Enter")
        await session.until(lambda text: "\nready" in text)
        await session.press("upgrade-manager prefl", "Tab")
        await session.until(lambda text: "upgrade-manager preflight" in text)
        await session.press("--conte", "Tab")
        await session.until(lambda text: "preflight --context" in text)
