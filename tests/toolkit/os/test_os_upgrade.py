"""The steps that replace a host's operating system, through the command that runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.managers.sweep import Sweep
from tests.support.toolkit.os_upgrade import (
    NEW_OS,
    OLD_OS,
    ROOTFS,
    RUNNING,
    boot,
    elementals,
    is_clean,
    is_upgraded,
    keeps_old_os,
    new_host,
    os_iso,
    os_world,
    rename,
)
from tests.support.toolkit.toolkit import ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import run_killed, run_killed_before
from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, GRUB_ENVIRONMENT, PASSIVE_IMAGE, TRANSITION_IMAGE
from upgrade_manager.toolkit.os.elemental import CONFIG
from upgrade_manager.toolkit.os.os_record import RECORD
from upgrade_manager.toolkit.os.os_rootfs import rootfs_path
from upgrade_manager.toolkit.os.os_upgrade import install_os, verify_os
from upgrade_manager.toolkit.run.context import ToolkitContext
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"
ELEMENTAL = "host  elemental upgrade --logfile"
_KEEPS = f"The node keeps {OLD_OS}"


async def _failure(world: ToolkitWorld) -> str:
    with pytest.raises(StepFailed) as error:
        await world.run(COMMAND)
    return str(error.value)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        pytest.param(
            {"failing": {"elemental upgrade --logfile": "level=error msg=rsync failed"}},
            "install-os: elemental returned 1: level=error msg=rsync failed. "
            f"See /usr/local/harvester-upgrade/os/elemental.log on node node-0. {_KEEPS}",
            id="elemental-fails",
        ),
        pytest.param(
            {"failing": {"elemental upgrade --help": "Illegal instruction"}},
            "install-os: elemental returned 1: Illegal instruction. "
            f"See /usr/local/harvester-upgrade/os/elemental.log on node node-0. {_KEEPS}",
            id="elemental-does-not-start",
        ),
        pytest.param(
            {"damage": "renames"},
            "install-os: elemental returned 1: Error while labeling the passive image "
            "/run/initramfs/cos-state/cOS/passive.img: exit status 1. "
            f"See /usr/local/harvester-upgrade/os/elemental.log on node node-0. {_KEEPS}",
            id="elemental-fails-between-renames",
        ),
        pytest.param(
            {"free_mib": 5085},
            "check-os: the new operating system needs 5086 MiB on the node's /run/initramfs/cos-state, which has 5085 "
            "MiB free. Enlarge that partition, or remove /run/initramfs/cos-state/cOS/passive.img (the fallback for "
            "boot failures) on node node-0",
            id="no-room",
        ),
        pytest.param(
            {"free_mib": 5086, "image_mib": 2790},
            "verify-os: the new /run/initramfs/cos-state/cOS/active.img is corrupt: /run/initramfs/cos-state ran full: "
            "the new image occupies 2786 MiB, and was made of 2415 MiB of files, where 5086 MiB were free. "
            f"{_KEEPS}",
            id="partition-ran-full",
        ),
        pytest.param(
            {"damage": "metadata"},
            "verify-os: the new /run/initramfs/cos-state/cOS/active.img is corrupt: e2fsck returned 4: /: ********** "
            f"WARNING: Filesystem still has errors **********. {_KEEPS}",
            id="damaged-file-system",
        ),
        pytest.param(
            {"damage": "content"},
            "verify-os: the new /run/initramfs/cos-state/cOS/active.img is corrupt: it lost the content of 1 files, "
            f"such as /usr/share/p11-kit/modules/p11-kit-trust.module. {_KEEPS}",
            id="lost-content",
        ),
        pytest.param(
            {"failing": {"sync /run": "error syncing: Input/output error"}},
            "verify-os: the new /run/initramfs/cos-state/cOS/active.img is corrupt: sync returned 1: error syncing: "
            f"Input/output error. {_KEEPS}",
            id="late-write-error",
        ),
        pytest.param(
            {"failing": {"mount -t squashfs": "mount: failed to setup loop device"}},
            "check-os: /rootfs.squashfs cannot be mounted, the next attempt downloads it again: mount returned 1: "
            "mount: failed to setup loop device",
            id="mount-fails",
        ),
    ],
)
async def test_failure_keeps_the_old_os_and_the_next_run_continues(
    tmp_path: Path, state: dict[str, object], message: str
) -> None:
    async with os_world(tmp_path) as world:
        healthy = {name: getattr(world.programs.state, name) for name in state}
        for name, value in state.items():
            setattr(world.programs.state, name, value)
        assert await _failure(world) == message
        assert keeps_old_os(world)
        assert world.programs.state.mounts == {}
        for name, value in healthy.items():
            setattr(world.programs.state, name, value)
        await world.run(COMMAND)
        assert is_upgraded(world)


async def test_image_is_larger_than_the_files(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.rootfs_mib, world.programs.state.image_mib = 4100, 4200
        await run_killed_before(world, COMMAND, ELEMENTAL)
        assert world.tree.read(f"{CONFIG}/config.yaml") == "upgrade:\n  system:\n    size: 4864\n"
        await world.run(COMMAND)
        assert is_upgraded(world)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>", "check-os: /rootfs.squashfs cannot be mounted, the next attempt downloads it again"),
        (b"PRETTY_NAME=Kiosk\n", "check-os: /rootfs.squashfs holds Kiosk, not the release's Harvester v1.8.0"),
    ],
    ids=["no-file-system", "another-os"],
)
async def test_wrong_download_is_removed(tmp_path: Path, content: bytes, message: str) -> None:
    async with os_world(tmp_path) as world:
        world.iso.files["/rootfs.squashfs"] = content
        assert (await _failure(world)).startswith(message)
        assert (elementals(world), keeps_old_os(world)) == (0, True)
        world.iso.files = os_iso()
        await world.run(COMMAND)
        assert is_upgraded(world)


async def test_download_of_another_iso_is_replaced(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.tree.write(rootfs_path(NEW_OS), "PRETTY_NAME=Kiosk\n")
        await world.run(COMMAND)
        assert is_upgraded(world)


@pytest.mark.parametrize(
    ("transition", "is_renamed", "is_rebooted"),
    [
        pytest.param("half an image", False, False, id="while it writes its image"),
        pytest.param(ROOTFS, True, False, id="between its renames"),
        pytest.param("", True, True, id="between its renames, by a power failure"),
    ],
)
async def test_elemental_that_was_interrupted_is_repeated(
    tmp_path: Path, transition: str, *, is_renamed: bool, is_rebooted: bool
) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, ELEMENTAL)
        if transition:
            world.tree.write(TRANSITION_IMAGE, transition)
        if is_renamed:
            rename(world, ACTIVE_IMAGE, PASSIVE_IMAGE)
        if is_rebooted:
            boot(world, OLD_OS)
        await world.run(COMMAND)
        assert is_upgraded(world)
        assert not world.tree.exists(TRANSITION_IMAGE)


@pytest.mark.full
async def test_killed_while_the_old_os_is_restored(tmp_path: Path, sweep: Sweep) -> None:
    async with os_world(tmp_path) as world:
        for at in sweep.points(22, 50, stride=1):
            await new_host(world, tmp_path / str(at))
            world.programs.state.damage = "metadata"
            try:
                where = await run_killed(world, COMMAND, at=at)
            except StepFailed:
                assert at > 30
                break
            assert "is corrupt" in await _failure(world), where
            assert keeps_old_os(world), where
            world.programs.state.damage = ""
            await world.run(COMMAND)
            assert is_upgraded(world), where


async def test_old_os_that_cannot_be_restored_is_an_alarm(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.damage = "metadata"
        world.programs.state.failing = {"mv --force": "mv: cannot move passive.img: Input/output error"}
        assert (await _failure(world)).endswith(
            "DO NOT REBOOT node node-0: its previous operating system cannot be restored: mv returned 1: mv: cannot "
            "move passive.img: Input/output error"
        )
        world.programs.state.failing = {}
        assert "is corrupt" in await _failure(world)
        assert keeps_old_os(world)


async def test_boot_into_the_old_os_begins_again(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await world.run(COMMAND)
        boot(world, OLD_OS)
        await world.run(COMMAND)
        assert elementals(world) == 2


async def test_record_of_another_release_does_not_count(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, ELEMENTAL)
        world.iso.files = os_iso(os="Harvester v1.8.1")
        await world.run(COMMAND)
        assert elementals(world) == 1
        assert world.programs.state.next_os == "Harvester v1.8.1"


async def test_image_that_changes_after_its_checks_is_not_booted(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, "host  systemctl is-active")
        assert '"verified": "' in (world.tree.read(RECORD) or "")
        world.tree.path(ACTIVE_IMAGE).write_text("changed by hand\n", encoding="utf-8")
        assert "is corrupt" in await _failure(world)
        assert world.programs.state.units == []


async def test_missing_grub_environment_is_created(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.tree.remove(GRUB_ENVIRONMENT)
        await world.run(COMMAND)
        assert world.tree.exists(GRUB_ENVIRONMENT)
        assert is_upgraded(world)


async def test_elemental_that_changes_another_disk_is_a_failure(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.damage = "elsewhere"
        assert "did not replace" in await _failure(world)
        assert world.tree.read(ACTIVE_IMAGE) == RUNNING
        assert is_clean(world) is False


@pytest.mark.parametrize("act", [install_os, verify_os])
async def test_step_without_its_record_fails(tmp_path: Path, act: Callable[[ToolkitContext], Awaitable[None]]) -> None:
    async with os_world(tmp_path) as world:
        with pytest.raises(StepFailed, match="the record of the upgrade has disappeared"):
            await act(world.context())


async def test_power_failure_and_a_kill_before_the_next_install(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, ELEMENTAL)
        rename(world, ACTIVE_IMAGE, PASSIVE_IMAGE)
        boot(world, OLD_OS)
        await run_killed_before(world, COMMAND, ELEMENTAL)
        assert keeps_old_os(world)
        await world.run(COMMAND)
        assert is_upgraded(world)


async def test_failed_upgrade_is_checked_again(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.failing = {"elemental upgrade --logfile": "level=error msg=rsync failed"}
        assert _KEEPS in await _failure(world)
        assert not world.tree.exists(RECORD)
