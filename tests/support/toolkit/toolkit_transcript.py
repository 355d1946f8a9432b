"""Transcripts of toolkit commands: steps, host programs, API writes and files, for golden listings.

`GOLDEN=write python -m pytest tests/toolkit` writes the listings again.
"""

from __future__ import annotations

import json
import os
import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.support.toolkit.toolkit_effects import observed
from upgrade_manager.toolkit.os.reboot import SCRIPT
from upgrade_manager.toolkit.run.catalogue import steps_of
from upgrade_manager.toolkit.run.steps import run_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.toolkit.toolkit import ToolkitWorld
    from upgrade_manager.toolkit.run.steps import Step

GOLDEN = Path(__file__).parents[2] / "golden/toolkit"
#: Long constants of the sources, by the name under which they are listed.
_SHORT = {SCRIPT: "'the script that waits for the Pod'"}
#: Folders in which the kernel shows its state.
_KERNEL = {"proc", "sys"}
#: The file with which helm upgrades a release.
_VALUES = re.compile(r"helm upgrade .* --values (\S+)")
_VERSION = re.compile(r'(?<="resourceVersion":")\d+')


class Transcript:
    """Implements Progress and Observer."""

    def __init__(self, root: Path, *, temporary: Path, steps: Sequence[Step]) -> None:
        self._root = root
        self._temporary = temporary
        #: Rows of release/migrations by the step that carries them out.
        self._rows = {step.name: step.row.id for step in steps if step.row is not None}
        self._files = _files(root)
        self.lines: list[str] = []

    async def started(self, step: str, *, number: int, total: int) -> None:
        row = f"  [{self._rows[step]}]" if step in self._rows else ""
        self.lines.append(f"{number}/{total} {step}{row}")

    def waiting(self, _: str, missing: str) -> None:
        if not self.lines or missing not in self.lines[-1]:
            self.lines.append(f"    wait  {missing}")

    def ended(self, step: str, *, skipped: bool) -> None:
        if skipped:
            self.lines.append(f"{step}: already done")
        files = _files(self._root)
        for path in sorted({*files, *self._files}):
            if files.get(path) != self._files.get(path):
                sign = "-" if path not in files else "+" if path not in self._files else "~"
                self.lines.append(f"    file  {sign} /{path}")
        self._files = files

    def before(self, effect: str) -> None:
        values = _VALUES.search(effect)
        for constant, name in _SHORT.items():
            effect = effect.replace(constant, name)
        effect = effect.replace(str(self._temporary), "TEMPORARY")
        self.lines.append(f"    {_VERSION.sub('RV', effect)}")
        if values is not None:
            content = yaml.safe_load(Path(values[1]).read_text(encoding="utf-8"))
            self.lines += [f"    value {key}: {json.dumps(value)}" for key, value in sorted(content.items())]

    def within(self, effect: str) -> None:
        """See Observer."""

    def after(self, effect: str) -> None:
        """See Observer."""


async def transcript(world: ToolkitWorld, command: str, **changes: object) -> str:
    """Run a command to its end and return the listing."""
    found = Transcript(world.tree.root, temporary=world.folder, steps=steps_of(command))
    context = world.context(**observed(world, found), **changes)
    await run_steps(steps_of(command), context, found)
    return "\n".join(found.lines) + "\n"


def golden(name: str, listing: str) -> str:
    """Return the kept listing, after writing this one if the environment asks for it."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(listing, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def _files(root: Path) -> dict[str, str]:
    """Return the tree's files, without the kernel's, with what changes when they do."""
    return {
        str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and path.relative_to(root).parts[0] not in _KERNEL
    }
