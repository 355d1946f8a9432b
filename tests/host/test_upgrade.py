"""Story: `node post-drain` installs the release's operating system, and the node boots it."""

from __future__ import annotations

import pytest

from hack.control_plane.elemental import VERSIONS
from hack.real_host import guest
from hack.real_host.guest import ACTIVE, PASSIVE
from hack.real_host.root_tree import NEW_OS, OLD_OS
from tests.support.host.node import Node

pytestmark = [pytest.mark.timeout(3600)]


@pytest.mark.parametrize("elemental_version", VERSIONS)
@pytest.mark.host("guest", "control-plane", "toolkit", "elemental")
def test_node_boots_the_release_after_its_pod_succeeded(node: Node) -> None:
    boot = node.machine.wait_for_boot()
    ended = node.pods.run("post-drain")
    assert (ended.status, ended.message) == (0, ""), ended.log
    # The unit reboots only once the Pod has ended, which this test reports.
    node.machine.wait_for_boot(after=boot)
    assert (guest.os_name(node.machine), guest.running_image(node.machine)) == (NEW_OS, ACTIVE)
    assert guest.names(node.machine) == {"active.img", "passive.img"}
    with node.connected():
        again = node.pods.run("post-drain")
    assert (again.status, again.message) == (0, ""), again.log
    assert '"elemental", "upgrade"' not in again.log


@pytest.mark.host("guest", "control-plane", "toolkit", "without-elemental")
def test_node_without_elemental_keeps_its_system(node: Node) -> None:
    inode = node.machine.call("stat", "--format=%i", ACTIVE)
    ended = node.pods.run("post-drain")
    assert ended.status == 1
    assert "node post-drain: install-os" in ended.message
    assert f"The node keeps {OLD_OS}" in ended.message
    assert (guest.running_image(node.machine), node.machine.call("stat", "--format=%i", ACTIVE)) == (ACTIVE, inode)
    assert guest.names(node.machine) == {"active.img", "passive.img"}
    # The toolkit has mounted the state partition writable to make room, and read-only again.
    assert node.machine.run("touch", f"{PASSIVE}.new").status != 0
