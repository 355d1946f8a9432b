"""Story: the power fails while elemental copies the tree, while it writes the image, and between its renames."""

from __future__ import annotations

import pytest

from hack.real_host import guest
from hack.real_host.guest import ACTIVE, PASSIVE, STATE
from hack.real_host.root_tree import NEW_OS, OLD_OS
from tests.support.host.node import Node

pytestmark = [pytest.mark.host("guest", "control-plane", "toolkit", "elemental"), pytest.mark.timeout(7200)]

#: Stops elemental as soon as it has renamed the active image, and prints the images that there are. It starts no
#: program after it has seen the rename, because the second one follows within a fraction of a second.
BETWEEN_RENAMES = f"""
until [ -e {STATE}/cOS/transition.img ] && elemental=$(pgrep -x elemental); do sleep 1; done
while [ -e {ACTIVE} ]; do :; done
kill -STOP $elemental
sync
ls {STATE}/cOS
"""


def test_each_cut_leaves_a_system_that_boots(node: Node) -> None:
    stopping = node.machine.start("sh", "-c", BETWEEN_RENAMES, log=node.folder / "stopped.log")
    process = node.pods.start("post-drain")
    for name, sign in (("tree", "transition.imgTree"), ("image", "transition.img")):
        node.machine.wait_until(lambda sign=sign: sign in guest.names(node.machine), f"at the {name}")  # type: ignore[misc]
        node.machine.call("sync")
        node.machine.power_cut(node.folder / name)
    stopping.wait()
    assert (node.folder / "stopped.log").read_text().split() == ["passive.img", "transition.img"]
    node.machine.power_cut(node.folder / "renames")
    node.machine.call("pkill", "-CONT", "-x", "elemental")
    ended = node.pods.ended(process)
    assert (ended.status, ended.message) == (0, ""), ended.log
    # It reboots by now.
    node.machine.unplug()
    for name, image in (("tree", ACTIVE), ("image", ACTIVE), ("renames", PASSIVE)):
        with node.cut(name) as machine:
            assert (guest.os_name(machine), guest.running_image(machine)) == (OLD_OS, image)
            assert guest.names(machine) - {"active.img", "passive.img"} != set()


def test_upgrade_after_a_cut_does_not_keep_its_leftovers(node: Node) -> None:
    guest.remount(node.machine, "rw")
    node.machine.call("mkdir", "--parents", f"{STATE}/cOS/transition.imgTree/usr")
    node.machine.call("touch", f"{STATE}/cOS/transition.imgTree/usr/of-another-release")
    guest.remount(node.machine, "ro")
    boot = node.machine.wait_for_boot()
    ended = node.pods.run("post-drain")
    assert (ended.status, ended.message) == (0, ""), ended.log
    node.machine.wait_for_boot(after=boot)
    assert guest.os_name(node.machine) == NEW_OS
    assert node.machine.run("test", "-e", "/usr/of-another-release").status != 0
