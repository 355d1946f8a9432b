"""A terminal of a given size, by tmux: what a user sees in it, and keys."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.programs.polling import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

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
        shell = f'env {shlex.join([*variables, *command])}; echo "status $?"; exec cat'
        await session._tmux("new-session", "-d", "-x", str(width), "-y", str(height), shell)
        try:
            yield session
        finally:
            await session._tmux("kill-server")
