"""Runs the command survey on a host that must not change, and reads its report."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from hack.host import state_partition
from tests.support.toolkit.file_operations import file_operations
from upgrade_manager.api.survey import decode

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.toolkit.toolkit import ToolkitWorld
    from upgrade_manager.api.survey import SurveyReport

COMMAND = "node survey"


async def report_of(world: ToolkitWorld) -> SurveyReport:
    """Run the command, and return its report, after which the host must be as it was, byte for byte."""
    # The simulated kernel shows changes of images with the next program.
    state_partition.refresh(world.tree.root)
    before = digest(world.tree.root)
    with file_operations(world.tree.root) as operations:
        await world.run(COMMAND)
    assert (digest(world.tree.root), operations.inside) == (before, [])
    report = decode(world.reports[-1])
    assert report is not None
    return report


def digest(root: Path) -> dict[str, tuple[int, float, str]]:
    """Return mode, time and content of everything in the tree."""
    found = ((path, path.lstat()) for path in root.rglob("*"))
    return {
        str(path): (state.st_mode, state.st_mtime, sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path, state in found
    }


async def findings(world: ToolkitWorld) -> dict[str, str]:
    """Return the messages by check."""
    return {finding.check: finding.message for finding in (await report_of(world)).findings}
