"""The comparison of the new image with the release's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.toolkit.os_upgrade import OLD_OS, is_upgraded, keeps_old_os, os_world
from upgrade_manager.toolkit.host.host_paths import TRANSITION_TREE
from upgrade_manager.toolkit.os.image_check import refuse_differences
from upgrade_manager.toolkit.os.os_rootfs import MOUNT_POINT
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"
_CORRUPT = "verify-os: the new /run/initramfs/cos-state/cOS/active.img is corrupt: "


@pytest.mark.rule("nodes: an image with files that the release lacks, or without files that it has, is not booted")
@pytest.mark.parametrize(
    ("path", "is_in_image", "message"),
    [
        pytest.param("usr/lib/of-another", True, "it has 1 files that the release does not have", id="extra"),
        pytest.param("usr/lib/library", False, "it lacks 1 files", id="missing"),
    ],
)
async def test_other_files_are_refused(tmp_path: Path, path: str, message: str, *, is_in_image: bool) -> None:
    async with os_world(tmp_path) as world:
        if not is_in_image:
            world.iso.files["/rootfs.squashfs"] += f"/{path}\n".encode()

        def change(part: str) -> None:
            if part != "the image":
                return
            if is_in_image:
                world.tree.write(f"{TRANSITION_TREE}/{path}", "of another release\n")
            else:
                world.tree.remove(f"{TRANSITION_TREE}/{path}")

        world.programs.stage = change
        with pytest.raises(StepFailed) as error:
            await world.run(COMMAND)
        assert str(error.value) == f"{_CORRUPT}{message}, such as /{path}. The node keeps {OLD_OS}"
        assert keeps_old_os(world)


@pytest.mark.parametrize(
    ("path", "is_in_image"),
    [
        ("mnt/file", False),
        ("host/file", False),
        ("dev/console", False),
        ("run/left", True),
        ("oem/90_custom.yaml", True),
    ],
)
async def test_files_that_elemental_does_not_copy_may_differ(tmp_path: Path, path: str, *, is_in_image: bool) -> None:
    async with os_world(tmp_path) as world:

        def change(part: str) -> None:
            if part == "the removal of what it needed" and not is_in_image:
                world.tree.write(f"{MOUNT_POINT}/{path}", "")
            if part == "the image" and is_in_image:
                world.tree.write(f"{TRANSITION_TREE}/{path}", "")

        world.programs.stage = change
        await world.run(COMMAND)
        assert world.programs.state.next_os == "Harvester v1.8.0"
        world.programs.stage = lambda _: None
        assert is_in_image or is_upgraded(world)


#: Lines of a real rsync: folders that elemental creates, places that it does not copy, and a file that a hook changed.
_USUAL = """*deleting   system/
*deleting   oem/
*deleting   lost+found/
.d..t...... boot/
>fcst...... etc/fstab
cD+++++++++ dev/console
cd+++++++++ mnt/
cd+++++++++ mnt/x/
>f+++++++++ mnt/x/f
"""


def test_usual_differences_are_accepted() -> None:
    refuse_differences(_USUAL)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("*deleting   usr/old/deep/f", "it has 1 files that the release does not have, such as /usr/old/deep/f"),
        (
            "*deleting   system/oem/99.yaml",
            "it has 1 files that the release does not have, such as /system/oem/",
        ),
        ("*deleting   usr/sp ace", "it has 1 files that the release does not have, such as /usr/sp ace"),
        (">f+++++++++ etc/new", "it lacks 1 files, such as /etc/new"),
        ("cL+++++++++ usr/lib/sym -> l", "it lacks 1 files, such as /usr/lib/sym -> l"),
        (">fc........ usr/lib/lost", "it lost the content of 1 files, such as /usr/lib/lost"),
    ],
)
def test_other_difference_is_refused(line: str, message: str) -> None:
    with pytest.raises(StepFailed) as error:
        refuse_differences(f"{_USUAL}{line}\n")
    assert str(error.value).startswith(message)
