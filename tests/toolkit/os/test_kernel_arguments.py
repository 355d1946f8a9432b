from __future__ import annotations

import json
from pathlib import Path

import pytest

from hack.host.network import INSTALLED, add_card, mac, set_arguments
from tests.support.toolkit.file_operations import file_operations
from tests.support.toolkit.os_upgrade import NEW_OS, OLD_OS, boot, is_upgraded, keeps_old_os, os_iso, os_world
from tests.support.toolkit.toolkit import PLAN, ToolkitWorld
from tests.support.toolkit.toolkit_interrupts import Killed, run_killed_before
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.toolkit.host.host_paths import GRUB_ENVIRONMENT
from upgrade_manager.toolkit.os.kernel_arguments import (
    RECORD,
    VARIABLE,
    arguments_missing,
    check_arguments,
    check_names,
    current_value,
    missing_arguments,
    restore_arguments,
    write_arguments,
)
from upgrade_manager.toolkit.run.errors import ProgramFailed, StepFailed

COMMAND = "node post-drain"
NAMES = f"ifname=enp1s0:{mac(1)} ifname=enp2s0:{mac(2)}"
CONFIG = "/oem/harvester.config"


def external_storage(world: ToolkitWorld, text: str | None) -> None:
    world.tree.remove(CONFIG)
    if text is not None:
        world.tree.write(CONFIG, text)


@pytest.mark.parametrize(
    ("current", "config", "missing"),
    [
        pytest.param(None, None, f"multipath=off {NAMES}", id="nothing was set"),
        pytest.param("", "os: {}\n", f"multipath=off {NAMES}", id="empty"),
        pytest.param(INSTALLED, None, NAMES, id="multipath off"),
        pytest.param("rd.multipath=1", None, NAMES, id="multipath on"),
        pytest.param("console=ttyS0", "os:\n  externalstorage:\n    enabled: true\n", NAMES, id="external storage"),
        pytest.param(
            "console=ttyS0", "os:\n  externalstorage:\n    enabled: false\n", f"multipath=off {NAMES}", id="none"
        ),
        pytest.param("console=ttyS0", "os: [text]\n", f"multipath=off {NAMES}", id="answers of another form"),
        pytest.param("console=ttyS0", "- text\n", f"multipath=off {NAMES}", id="answers are a list"),
        pytest.param(f"{INSTALLED} ifname=enp1s0:{mac(1)}", None, f"ifname=enp2s0:{mac(2)}", id="second of a bond"),
        pytest.param(f"{INSTALLED} ifname=old:{mac(1).upper()} {NAMES}", None, "", id="other name of a MAC"),
        pytest.param(f"{INSTALLED} {NAMES} quiet", None, "", id="all there"),
        pytest.param(f"{INSTALLED} xifname=enp1s0:{mac(1)}", None, NAMES, id="another argument"),
        pytest.param(f"{INSTALLED} ifname=enp1s0:{mac(1)}:x", None, NAMES, id="longer argument"),
    ],
)
async def test_missing(tmp_path: Path, current: str | None, config: str | None, missing: str) -> None:
    async with os_world(tmp_path) as world:
        set_arguments(world.tree.root, current)
        external_storage(world, config)
        assert " ".join(missing_arguments(world.tree)) == missing
        lacks = f"{VARIABLE} in {GRUB_ENVIRONMENT} lacks {missing}" if missing else ""
        context = world.context()
        assert await arguments_missing(context) == lacks
        if missing:
            await write_arguments(context)
        assert current_value(world.tree) == f"{current or ''} {missing}".strip()
        assert await arguments_missing(context) == ""


async def test_cards_of_one_mac_get_one_name(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        add_card(world.tree.root, "enp3s0", mac=mac(1))
        assert " ".join(missing_arguments(world.tree)) == NAMES


async def test_other_variables_stay(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        content = world.tree.read_bytes(GRUB_ENVIRONMENT) or b""
        world.tree.write_bytes(GRUB_ENVIRONMENT, content.replace(b"third", b"saved_entry=fallback\nthird")[:1024])
        await write_arguments(world.context())
        assert (world.tree.read_bytes(GRUB_ENVIRONMENT) or b"").startswith(
            f"# GRUB Environment Block\nsaved_entry=fallback\n{VARIABLE}={INSTALLED} {NAMES}\n#".encode()
        )


async def test_second_run_writes_nothing(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await world.run(COMMAND)
        boot(world, NEW_OS)
        with file_operations(world.tree.root / "oem") as operations:
            await world.run(COMMAND)
        assert operations.inside == []


async def test_node_that_runs_the_release_is_left_alone(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        boot(world, NEW_OS)
        world.tree.write(GRUB_ENVIRONMENT, "no block")
        context = world.context()
        assert await arguments_missing(context) == ""
        await check_arguments(context)
        await check_names(context)


@pytest.mark.parametrize("count", [25, 26])
async def test_room_is_checked_before_anything_is_changed(tmp_path: Path, count: int) -> None:
    async with os_world(tmp_path) as world:
        for number in (1, 2):
            world.tree.remove(f"/sys/class/net/enp{number}s0")
        for number in range(count):
            add_card(world.tree.root, f"enp{10 + number // 2}s0f{number % 2}", mac=mac(number + 10))
        set_arguments(world.tree.root, INSTALLED.ljust(65, "x"))
        if count == 25:
            await world.run(COMMAND)
            assert is_upgraded(world)
            return
        with pytest.raises(StepFailed) as refused:
            await world.run(COMMAND)
        names = ", ".join(sorted(f"enp{10 + number // 2}s0f{number % 2}" for number in range(count)))
        assert str(refused.value) == (
            f"check-kernel-arguments: {GRUB_ENVIRONMENT} has no room for {VARIABLE} with the names of the 26 NICs: "
            f"1025 bytes are needed, and the block has 1024. The NICs are {names}. Disable NICs that are not used in "
            f"the firmware, or remove what is not needed from {VARIABLE} on node node-0: "
            f"grub2-editenv {GRUB_ENVIRONMENT} list"
        )
        assert keeps_old_os(world)
        assert world.programs.state.calls == []
        assert not world.tree.exists(RECORD)


async def test_killed_at_every_change_of_a_file(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        before = world.tree.read_bytes(GRUB_ENVIRONMENT)
        for at in range(7):
            world.tree.remove(RECORD)
            set_arguments(world.tree.root, INSTALLED)
            try:
                with file_operations(world.tree.root, kill_at=at):
                    await write_arguments(world.context())
            except Killed:
                assert current_value(world.tree) == INSTALLED
            context = world.context()
            if await arguments_missing(context):
                await write_arguments(context)
            assert current_value(world.tree) == f"{INSTALLED} {NAMES}"
            try:
                with file_operations(world.tree.root, kill_at=at):
                    await restore_arguments(world.context())
            except Killed:
                assert world.tree.exists(RECORD)
            await restore_arguments(world.context())
            assert world.tree.read_bytes(GRUB_ENVIRONMENT) == before
            assert not world.tree.exists(RECORD)


@pytest.mark.parametrize("current", [INSTALLED, None, "quiet"])
async def test_value_is_restored_where_the_old_os_stays(tmp_path: Path, current: str | None) -> None:
    async with os_world(tmp_path) as world:
        set_arguments(world.tree.root, current)
        before = world.tree.read_bytes(GRUB_ENVIRONMENT)
        world.programs.state.damage = "metadata"
        for _ in range(2):
            with pytest.raises(StepFailed, match="is corrupt"):
                await world.run(COMMAND)
            assert keeps_old_os(world)
            assert world.tree.read_bytes(GRUB_ENVIRONMENT) == before
        world.programs.state.damage = ""
        await world.run(COMMAND)
        assert is_upgraded(world)
        assert NAMES in (current_value(world.tree) or "")


async def test_value_is_restored_after_a_reboot_into_the_old_os(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, "host  elemental upgrade --logfile")
        boot(world, OLD_OS)
        add_card(world.tree.root, "enp3s0", mac=mac(3))
        world.programs.state.damage = "metadata"
        with pytest.raises(StepFailed, match="is corrupt"):
            await world.run(COMMAND)
        assert current_value(world.tree) == INSTALLED


async def test_value_that_a_user_has_changed_stays(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await write_arguments(world.context())
        set_arguments(world.tree.root, f"{INSTALLED} {NAMES} quiet")
        await restore_arguments(world.context())
        assert current_value(world.tree) == f"{INSTALLED} {NAMES} quiet"
        assert not world.tree.exists(RECORD)


async def test_record_of_another_release_does_not_count(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await write_arguments(world.context())
        world.iso.files = os_iso(os="Harvester v1.8.1")
        await restore_arguments(world.context())
        assert current_value(world.tree) == f"{INSTALLED} {NAMES}"


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"os": NEW_OS})])
async def test_damaged_record_counts_as_none(tmp_path: Path, text: str) -> None:
    async with os_world(tmp_path) as world:
        world.tree.write(RECORD, text)
        await restore_arguments(world.context())
        await write_arguments(world.context())
        await restore_arguments(world.context())
        assert current_value(world.tree) == INSTALLED


async def test_value_that_cannot_be_restored_is_named(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        await run_killed_before(world, COMMAND, "host  elemental upgrade --logfile")
        world.programs.state.damage = "metadata"
        world.tree.make_directory(f"{GRUB_ENVIRONMENT}.partial")
        with pytest.raises(StepFailed) as failed:
            await world.run(COMMAND)
        assert str(failed.value).endswith(
            "The kernel's arguments are those of the release: /oem/grubenv cannot be written: Is a directory. "
            f"The node keeps {OLD_OS}"
        )
        assert keeps_old_os(world)


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        pytest.param(
            GRUB_ENVIRONMENT,
            "boot=d\n",
            "/oem/grubenv is not an environment block of GRUB, which ignores it. Move it away, make a new one "
            "(grub2-editenv /oem/grubenv create), and set again what it had",
            id="no block",
        ),
        pytest.param(GRUB_ENVIRONMENT, None, "/oem/grubenv cannot be read: Is a directory", id="block not readable"),
        pytest.param(
            CONFIG,
            "os: [",
            "/oem/harvester.config is not valid YAML, so that nothing says whether multipath is used",
            id="no answers",
        ),
        pytest.param(CONFIG, None, "/oem/harvester.config cannot be read: Is a directory", id="answers not readable"),
    ],
)
async def test_file_that_cannot_be_read_fails_the_step(
    tmp_path: Path, path: str, content: str | None, message: str
) -> None:
    async with os_world(tmp_path) as world:
        set_arguments(world.tree.root, "quiet")
        world.tree.remove(path)
        world.tree.make_directory(path) if content is None else world.tree.write(path, content)
        with pytest.raises(StepFailed) as refused:
            await world.run(COMMAND)
        assert str(refused.value) == f"check-kernel-arguments: {message}"
        assert world.programs.state.calls == []


async def test_emptied_block_is_written_again(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.tree.write(GRUB_ENVIRONMENT, "")
        await world.run(COMMAND)
        assert current_value(world.tree) == f"multipath=off {NAMES}"


async def test_names_that_grub_does_not_read_fail_the_step(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        set_arguments(world.tree.root, f"{INSTALLED} ifname=enp2s0:{mac(2)}")
        with pytest.raises(StepFailed) as refused:
            await check_names(world.context())
        assert str(refused.value) == (
            "the release's drivers may rename the NICs enp1s0, and GRUB does not read their names from /oem/grubenv. "
            "Show what it reads: grub2-editenv /oem/grubenv list"
        )
        world.tree.remove(GRUB_ENVIRONMENT)
        with pytest.raises(ProgramFailed, match=r"^grub2-editenv returned 1: .*invalid environment block"):
            await check_names(world.context())


async def test_names_are_checked_where_the_releases_need_it(tmp_path: Path) -> None:
    async with os_world(tmp_path) as world:
        world.programs.state.failing = {"grub2-editenv": "Illegal instruction"}
        with pytest.raises(ProgramFailed, match=r"^check-nic-names: grub2-editenv returned 1: Illegal instruction$"):
            await world.run(COMMAND)
        assert keeps_old_os(world)
        patch = MergePatch({"status": {"previousVersion": "v1.8.0-rc1"}})
        await world.client.patch(UPGRADE_PLANS, PLAN, patch, subresource="status")
        await world.run(COMMAND)
        assert is_upgraded(world)
