"""Listings of `node post-drain` on hosts of several kinds: the changes beside the operating system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.toolkit.hosts import HOSTS, thirty_long_names
from tests.support.toolkit.os_upgrade import is_upgraded, keeps_old_os, os_world
from tests.support.toolkit.toolkit import ToolkitWorld
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.toolkit.host.host_paths import STATE_FILE
from upgrade_manager.toolkit.os.kernel_arguments import current_value
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"
#: The steps that differ between hosts.
STEPS = ("-kernel-arguments", "create-grub-files", "check-nic-names", "move-state-file", "install-os", "arrange-reboot")


async def _listing(world: ToolkitWorld) -> str:
    """Return the listing of the steps that differ, and the arguments of the next boot."""
    try:
        text = await transcript(world, COMMAND)
    except StepFailed as error:
        assert keeps_old_os(world)
        return f"fails: {error}\n"
    assert is_upgraded(world) or world.tree.exists(f"{STATE_FILE}.bak")
    kept, shows = [], False
    for line in text.splitlines():
        if not line.startswith(" "):
            shows = any(step in line for step in STEPS)
        if shows:
            kept.append(line.partition(" ")[2] if not line.startswith(" ") and "/" in line[:5] else line)
    return "\n".join([*kept, f"the next boot: {current_value(world.tree)}"]) + "\n"


@pytest.mark.parametrize("build", HOSTS, ids=lambda build: build.__name__)
async def test_golden_run_on_a_host(tmp_path: Path, build: Callable[[ToolkitWorld], None]) -> None:
    async with os_world(tmp_path) as world:
        build(world)
        listing = await _listing(world)
        assert listing == golden(f"post-drain-{build.__name__.replace('_', '-')}", listing)


@pytest.mark.parametrize(
    "build", [host for host in HOSTS if host is not thirty_long_names], ids=lambda one: one.__name__
)
async def test_second_run_changes_nothing(tmp_path: Path, build: Callable[[ToolkitWorld], None]) -> None:
    async with os_world(tmp_path) as world:
        build(world)
        await world.run(COMMAND)
        listing = await transcript(world, COMMAND)
        assert not [line for line in listing.splitlines() if line.startswith("    file")]
