from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.file_operations import file_operations
from tests.support.toolkit.os_upgrade import NEW_OS, boot, os_world
from tests.support.toolkit.toolkit_interrupts import Killed
from upgrade_manager.toolkit.host.grub_environment import empty_block
from upgrade_manager.toolkit.host.host_paths import GRUB_CUSTOM, GRUB_ENVIRONMENT
from upgrade_manager.toolkit.os.grub_files import files_missing, write_files
from upgrade_manager.toolkit.run.errors import StepFailed

FILES = (GRUB_ENVIRONMENT, GRUB_CUSTOM)


@pytest.mark.parametrize("absent", [FILES, FILES[:1], FILES[1:], ()], ids=str)
async def test_absent_files_are_created(tmp_path: Path, absent: tuple[str, ...]) -> None:
    async with os_world(tmp_path) as world:
        for path in FILES:
            world.tree.remove(path) if path in absent else world.tree.write(path, "of the user\n")
        context = world.context()
        assert await files_missing(context) == ", ".join(absent)
        await write_files(context)
        assert await files_missing(context) == ""
        expected = {GRUB_ENVIRONMENT: empty_block(), GRUB_CUSTOM: b""}
        for path in FILES:
            assert world.tree.read_bytes(path) == (expected[path] if path in absent else b"of the user\n")


async def test_node_that_runs_the_release_is_left_alone(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        boot(world, NEW_OS)
        world.tree.remove(GRUB_CUSTOM)
        assert await files_missing(world.context()) == ""


async def test_killed_at_every_change_the_next_run_goes_on(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        for at in range(6):
            for path in FILES:
                world.tree.remove(path)
            try:
                with file_operations(world.tree.root, kill_at=at):
                    await write_files(world.context())
            except Killed:
                assert await files_missing(world.context()) != ""
            await write_files(world.context())
            assert world.tree.read_bytes(GRUB_ENVIRONMENT) == empty_block()


@pytest.mark.parametrize("partial", ["grubenv.partial", "grubcustom.partial"])
async def test_file_that_cannot_be_written_fails_the_step(tmp_path: Path, partial: str) -> None:
    async with os_world(tmp_path) as world:
        for path in FILES:
            world.tree.remove(path)
        world.tree.make_directory(f"/oem/{partial}")
        with pytest.raises(StepFailed, match=rf"^/oem/{partial[:-8]} cannot be written: Is a directory$"):
            await write_files(world.context())


async def test_file_that_cannot_be_looked_for_fails_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with os_world(tmp_path) as world:

        def broken(*_: object) -> bool:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(type(world.tree), "is_there", broken)
        with pytest.raises(StepFailed, match=r"^the files of GRUB cannot be read: Input/output error$"):
            await files_missing(world.context())
