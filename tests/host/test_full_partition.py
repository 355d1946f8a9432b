"""Story: the state partition is full before, or while, the new operating system is written."""

from __future__ import annotations

import pytest

from hack.real_host import guest
from hack.real_host.guest import ACTIVE, PASSIVE, STATE
from hack.real_host.machine import Machine
from hack.real_host.root_tree import OLD_OS
from tests.support.host.node import Node

pytestmark = [pytest.mark.timeout(3600)]

FILL = f"{STATE}/fill"


def free_mib(machine: Machine) -> int:
    return int(machine.call("df", "--output=avail", "--block-size=1M", STATE).split()[-1])


def leave(machine: Machine, *, mib: int) -> None:
    """Fill the partition, so that so many MiB are free."""
    guest.remount(machine, "rw")
    machine.call("fallocate", "--length", f"{free_mib(machine) - mib}MiB", FILL)
    machine.call("sync")


@pytest.mark.host("guest", "control-plane", "toolkit")
def test_upgrade_that_lacks_room_changes_nothing(node: Node) -> None:
    leave(node.machine, mib=600)
    guest.remount(node.machine, "ro")
    ended = node.pods.run("post-drain")
    assert ended.status == 1
    assert "node post-drain: check-os: the new operating system needs " in ended.message
    assert f"on the node's {STATE}, which has 600 MiB free" in ended.message
    assert guest.running_image(node.machine) == ACTIVE
    assert guest.names(node.machine) == {"active.img", "passive.img"}


@pytest.mark.host("guest", "control-plane", "toolkit", "elemental")
def test_partition_that_runs_full_keeps_the_running_system(node: Node) -> None:
    boot = node.machine.wait_for_boot()
    process = node.pods.start("post-drain")
    node.machine.wait_until(lambda: "transition.imgTree" in guest.names(node.machine), "installing")
    # Another program takes the room that the check has found.
    leave(node.machine, mib=64)
    ended = node.pods.ended(process)
    assert ended.status == 1
    assert f"The node keeps {OLD_OS}" in ended.message
    assert guest.running_image(node.machine) == ACTIVE
    assert guest.names(node.machine) == {"active.img", "passive.img"}
    # The partition is read-only again, although elemental was killed.
    assert node.machine.run("touch", f"{PASSIVE}.new").status != 0
    node.machine.run("systemctl", "reboot", seconds=60)
    node.machine.wait_for_boot(after=boot)
    assert (guest.os_name(node.machine), guest.running_image(node.machine)) == (OLD_OS, ACTIVE)
