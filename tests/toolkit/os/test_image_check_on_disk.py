"""The release's root file system and its image, as real file systems that real programs make, mount and compare."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.programs.private_host import PrivateHost, private_host, skip_without
from tests.support.toolkit.os_upgrade import OLD_OS, ROOTFS, os_iso
from tests.support.toolkit.toolkit import toolkit_world
from upgrade_manager.toolkit.host.host_paths import ACTIVE_IMAGE, PASSIVE_IMAGE, STATE_PARTITION, TRANSITION_TREE
from upgrade_manager.toolkit.os.image_check import verify_image
from upgrade_manager.toolkit.os.os_images import COPY, copied_size, disk_usage, free_space, make_room
from upgrade_manager.toolkit.os.os_record import OsRecord
from upgrade_manager.toolkit.os.os_rootfs import (
    IMAGE_MOUNT_POINT,
    MOUNT_POINT,
    mounted_rootfs,
    rootfs_path,
    unmount_all,
)
from upgrade_manager.toolkit.run.context import ToolkitContext
from upgrade_manager.toolkit.run.errors import BadArchive, StepFailed

pytestmark = [pytest.mark.full, pytest.mark.real_loop]

NEW = "Harvester v1.8.0"
DOWNLOAD = rootfs_path(NEW)
#: Makes the release in /release: with a hole, a device, a capability, a hard link, and a file that is not copied.
RELEASE = """set -eu
mkdir -p /release/etc /release/usr/lib /release/dev /release/mnt /release/var/lib
cd /release
printf '%s' "$1" >etc/os-release
seq 1 400000 >usr/lib/library
ln usr/lib/library usr/lib/library.1
ln -s library.1 usr/lib/link
printf data >var/lib/hole && truncate --size=8M var/lib/hole
mknod dev/console c 5 1
printf ping >usr/ping && chmod 4755 usr/ping
printf x >usr/capable
setfattr --name=security.capability --value=0sAQAAAgAgAAAAAAAAAAAAAAAAAAA= usr/capable
printf x >mnt/not-copied
mksquashfs /release "$2" -quiet -no-progress >/dev/null
"""
#: Makes the state partition with an image of the release as elemental makes it, and a fallback of empty blocks.
STATE = """set -eu
mkdir -p "$1"
truncate --size=256M /tmp/state
mke2fs -q -t ext4 /tmp/state
mount -o loop /tmp/state "$1"
mkdir "$1/cOS"
cp --archive /release /tmp/image
rm -r /tmp/image/mnt/not-copied
mkdir -p /tmp/image/oem /tmp/image/system /tmp/image/usr/local
mke2fs -q -t ext2 -L COS_ACTIVE -d /tmp/image "$2" 96M
head --bytes=32M /dev/zero >"$3"
mount -o remount,ro "$1"
"""


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PrivateHost]:
    """Provide a host with the download."""
    skip_without("mksquashfs", "mke2fs", "e2fsck", "debugfs", "rsync", "setfattr", "getfattr")
    async with private_host(tmp_path, monkeypatch, files={"/etc/os-release": f'PRETTY_NAME="{OLD_OS}"\n'}) as host:
        host.tree.make_directory(DOWNLOAD.rpartition("/")[0])
        await host.run("sh", "-c", RELEASE, "sh", ROOTFS, DOWNLOAD)
        yield host


@pytest.fixture
async def context(tmp_path: Path, host: PrivateHost) -> AsyncIterator[ToolkitContext]:
    async with toolkit_world(tmp_path / "world", os_iso()) as world:
        yield world.context(tree=host.tree, programs=host.programs)


async def installed(host: PrivateHost) -> OsRecord:
    """Make the state partition, and return the record of an installation to it."""
    await host.run("sh", "-c", STATE, "sh", STATE_PARTITION, ACTIVE_IMAGE, PASSIVE_IMAGE)
    return OsRecord(os=NEW, boot="boot", image_mib=96, tree_mib=10, free_mib=250, running=0)


async def change(host: PrivateHost, script: str) -> None:
    """Change the state partition, which is read-only before and after."""
    remount = f"mount -o remount,{{}} {STATE_PARTITION}"
    await host.run("sh", "-euc", f"{remount.format('rw')}; {script}; {remount.format('ro')}")


async def mounts(host: PrivateHost) -> list[str]:
    """Return what is mounted at the places of an upgrade."""
    lines = (await host.run("cat", "/proc/mounts")).splitlines()
    places = [line.split()[1] for line in lines]
    return [place for place in places if place in {MOUNT_POINT, IMAGE_MOUNT_POINT}]


async def test_download_is_mounted_with_all_that_it_holds(host: PrivateHost, context: ToolkitContext) -> None:
    async with mounted_rootfs(context):
        # Including what rsync does not compare in the check of the image.
        assert await host.run("sh", "-c", f"rsync -aHAXn --itemize-changes --delete /release/ {MOUNT_POINT}/") == ""
        assert await host.run("stat", "--format=%t:%T %F", f"{MOUNT_POINT}/dev/console") == "5:1 character special file"
        assert "security.capability" in await host.run("getfattr", "-m", "-", f"{MOUNT_POINT}/usr/capable")
    assert await mounts(host) == []


async def test_measured_room_is_enough_for_a_copy_by_rsync(host: PrivateHost, context: ToolkitContext) -> None:
    await installed(host)
    before = await free_space(context)
    async with mounted_rootfs(context):
        measured = await copied_size(context, MOUNT_POINT)
        await host.run("mount", "-o", "remount,rw", STATE_PARTITION)
        # elemental's options (rancher/elemental-toolkit, pkg/utils/common.go, SyncData).
        await host.run("rsync", "--archive", "--xattrs", "--acls", f"{MOUNT_POINT}/", f"{STATE_PARTITION}/copy")
    await host.run("sync", "--file-system", STATE_PARTITION)
    used = before - await free_space(context)
    assert used > await disk_usage(context, "/release")
    assert used <= measured * COPY + 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param("head --bytes=10000 /dev/urandom >{}", "cannot be mounted", id="no file system"),
        pytest.param("truncate --size=-8192 {}", "cannot be mounted", id="cut off"),
        pytest.param(
            "rm -r /release/etc && mksquashfs /release /tmp/other -quiet -no-progress >/dev/null && mv /tmp/other {}",
            "holds no operating system",
            id="another",
        ),
    ],
)
async def test_damaged_download_is_removed(
    host: PrivateHost, context: ToolkitContext, damage: str, message: str
) -> None:
    await host.run("sh", "-c", damage.format(DOWNLOAD))
    with pytest.raises(BadArchive, match=message):
        async with mounted_rootfs(context):
            pytest.fail("it was mounted")
    assert not host.tree.exists(DOWNLOAD)
    assert await mounts(host) == []


async def test_mounts_of_a_killed_run_are_undone(host: PrivateHost, context: ToolkitContext) -> None:
    await installed(host)
    await host.run("mkdir", "-p", MOUNT_POINT, IMAGE_MOUNT_POINT)
    await host.run("mount", "-t", "squashfs", "-o", "loop,ro", DOWNLOAD, MOUNT_POINT)
    await host.run("mount", "-o", "loop,ro", ACTIVE_IMAGE, IMAGE_MOUNT_POINT)
    await unmount_all(context)
    assert await mounts(host) == []
    assert await host.run("losetup", "--associated", ACTIVE_IMAGE) == ""


async def test_equal_image_passes(host: PrivateHost, context: ToolkitContext) -> None:
    record = await installed(host)
    await verify_image(context, record)
    assert await mounts(host) == []


LIBRARY = "usr/lib/library"
_LOST = f"it lost the content of 2 files, such as /{LIBRARY}"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(
            f"cp -p usr/lib/library /tmp/time; head -c $(stat -c %s {LIBRARY}) /dev/zero 1<>{LIBRARY} >&1; "
            f"touch -r /tmp/time {LIBRARY}",
            _LOST,
            id="zeros",
        ),
        pytest.param(f"rm {LIBRARY}", f"it lacks 1 files, such as /{LIBRARY}", id="missing file"),
        pytest.param("rm usr/lib/link", "it lacks 1 files, such as /usr/lib/link -> library.1", id="missing link"),
        pytest.param(
            "mkdir usr/old && touch usr/old/a", "it has 2 files that the release does not have", id="extra files"
        ),
    ],
)
async def test_difference_is_refused(host: PrivateHost, context: ToolkitContext, damage: str, message: str) -> None:
    record = await installed(host)
    await change(host, f"mkdir /tmp/m; mount -o loop {ACTIVE_IMAGE} /tmp/m; (cd /tmp/m; {damage}); umount /tmp/m")
    with pytest.raises(StepFailed) as error:
        await verify_image(context, record)
    assert str(error.value).startswith(message)
    assert await mounts(host) == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(f"debugfs -w -R 'clri /{LIBRARY}' {ACTIVE_IMAGE}", "e2fsck returned 4: ", id="inode"),
        pytest.param(f"head --bytes=65536 /dev/zero 1<>{ACTIVE_IMAGE} >&1", "e2fsck returned ", id="beginning"),
    ],
)
async def test_damaged_file_system_is_refused(
    host: PrivateHost, context: ToolkitContext, damage: str, message: str
) -> None:
    record = await installed(host)
    await change(host, damage)
    with pytest.raises(StepFailed) as error:
        await verify_image(context, record)
    assert str(error.value).startswith(message)


async def test_room_is_made_on_the_partition(host: PrivateHost, context: ToolkitContext) -> None:
    await installed(host)
    await change(host, f"mkdir {TRANSITION_TREE}; head --bytes=16M /dev/urandom >{TRANSITION_TREE}/left")
    before = await free_space(context)
    await make_room(context)
    await host.run("sync", "--file-system", STATE_PARTITION)
    assert await free_space(context) - before >= 47
    assert not host.tree.exists(TRANSITION_TREE)
    assert await disk_usage(context, PASSIVE_IMAGE) == 0
    assert host.tree.path(PASSIVE_IMAGE).stat().st_size == 32 * 1024 * 1024
    # The partition is read-only again.
    line = next(one for one in (await host.run("cat", "/proc/mounts")).splitlines() if f" {STATE_PARTITION} " in one)
    assert line.split()[3].startswith("ro")
