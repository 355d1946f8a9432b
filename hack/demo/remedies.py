"""Runs the commands of the manager's remedies as they stand in a blocker; disturbance.py mends by it.

A blocker's remedies have alternatives, and commands that only show something: of them the demo runs those that undo its
break. It runs them with the user's kubectl. Where there is none, or the remedy is not a command, its client makes the
change.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.demo.programs import DemoError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hack.demo.commands import Command
    from upgrade_manager.api.blockers import Blocker

#: Seconds for which a blocker or a failure is shown before its remedy.
SHOWN = 10.0
#: Seconds for one command.
TIMEOUT = 60.0
#: Two forms of a word.
_SAME = {"deployment": "deploy", "poddisruptionbudgets.policy": "pdb"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """The user's kubectl, and the cluster of the demo."""

    #: Empty if the machine has none.
    program: str
    kubeconfig: Path

    @classmethod
    def of(cls, kubeconfig: Path) -> Kubectl:
        """Find it on the PATH, which `make` extends by .venv/bin."""
        return cls(program=shutil.which("kubectl") or "", kubeconfig=kubeconfig)

    async def run(self, command: str) -> str:
        """Run the command in a shell, as a user who pastes it, and return its output. Raises DemoError."""
        programs = Path(sys.executable).parent
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=self.kubeconfig.parent,
            env={
                **os.environ,
                "KUBECONFIG": str(self.kubeconfig),
                "PATH": f"{os.environ.get('PATH', os.defpath)}:{programs}",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(TIMEOUT):
                output, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise DemoError(f"the remedy has not ended within {TIMEOUT:.0f} s: {command}") from None
        if process.returncode:
            raise DemoError(f"the remedy failed: {command}\n{output.decode(errors='replace').strip()}")
        return output.decode(errors="replace").strip()


def printed(blockers: Iterable[Blocker], own: Sequence[Command]) -> list[str]:
    """Return the commands of the blockers' remedies that do what the demo's own do, in their order."""
    commands = [one.command for blocker in blockers for one in blocker.remedies if one.command]
    return [*dict.fromkeys(text for one in own for text in commands if does(text, one))]


def does(text: str, own: Command) -> bool:
    """Return True for a command that does what the demo's own does, perhaps with more words."""
    return words(str(own)) <= words(text)


def words(text: str) -> frozenset[str]:
    """Return the words of a command, without the differences that kubectl ignores."""
    return frozenset(_SAME.get(word, word) for word in re.split(r"[\s/=]+", text.strip()))
