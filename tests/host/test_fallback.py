"""Story: a node whose new system did not boot runs its fallback, and the upgrade is retried."""

from __future__ import annotations

import pytest

from hack.real_host import guest
from hack.real_host.guest import ACTIVE, PASSIVE
from hack.real_host.machine import Machine
from hack.real_host.root_tree import NEW_OS, OLD_OS
from tests.support.host.node import Node

pytestmark = [pytest.mark.timeout(3600)]


def fall_back(machine: Machine) -> str:
    """Boot a damaged system and reset it, and return the boot of the fallback."""
    boot = machine.wait_for_boot()
    guest.damage_active(machine)
    machine.run("systemctl", "reboot", seconds=60)
    machine.wait_for_console("has no /sbin/init: waiting for a reset")
    machine.reset()
    return machine.wait_for_boot(after=boot)


@pytest.mark.host("guest", "control-plane", "toolkit", "elemental")
def test_retry_on_the_fallback_boots_the_release(node: Node) -> None:
    boot = fall_back(node.machine)
    inode = node.machine.call("stat", "--format=%i", PASSIVE)
    with node.connected():
        ended = node.pods.run("post-drain")
        assert (ended.status, ended.message) == (0, ""), ended.log
        # The unit reads the Pod through the connection before it reboots.
        node.machine.wait_for_boot(after=boot)
    assert (guest.os_name(node.machine), guest.running_image(node.machine)) == (NEW_OS, ACTIVE)
    # The image that ran is the fallback again, and the damaged one is removed.
    assert node.machine.call("stat", "--format=%i", PASSIVE) == inode


@pytest.mark.host("guest", "control-plane", "toolkit", "without-elemental")
def test_failed_retry_makes_the_running_image_the_active_one(node: Node) -> None:
    boot = fall_back(node.machine)
    inode = node.machine.call("stat", "--format=%i", PASSIVE)
    with node.connected():
        ended = node.pods.run("post-drain")
    assert ended.status == 1
    assert f"The node keeps {OLD_OS}" in ended.message
    assert (guest.running_image(node.machine), node.machine.call("stat", "--format=%i", ACTIVE)) == (ACTIVE, inode)
    assert guest.names(node.machine) == {"active.img"}
    node.machine.run("systemctl", "reboot", seconds=60)
    node.machine.wait_for_boot(after=boot)
    assert guest.os_name(node.machine) == OLD_OS
