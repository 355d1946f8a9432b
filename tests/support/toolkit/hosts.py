"""Hosts of several kinds before an upgrade: their network cards, disks, and how they were installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.host.network import RANDOM, add_card, add_device, mac, set_arguments
from upgrade_manager.toolkit.host.host_paths import GRUB_CUSTOM, GRUB_ENVIRONMENT, STATE_FILE

if TYPE_CHECKING:
    from tests.support.toolkit.toolkit import ToolkitWorld

CONFIG = "/oem/harvester.config"


def _no_cards(world: ToolkitWorld) -> None:
    for name in world.tree.names("/sys/class/net"):
        world.tree.remove(f"/sys/class/net/{name}")


def bonds(world: ToolkitWorld) -> None:
    """Make two bonds: the members of one show its MAC, and the first member of the other is pinned already."""
    _no_cards(world)
    root = world.tree.root
    for number, (name, bond) in enumerate(
        [("ens1f0", mac(1)), ("ens1f1", mac(1)), ("ens2f0", mac(3)), ("ens2f1", mac(3))], start=1
    ):
        add_card(root, name, mac=mac(number), bond=bond)
    add_device(root, "mgmt-bo", mac=mac(1))
    add_device(root, "mgmt-br", mac=mac(1))
    add_device(root, "data-bo", mac=mac(3))
    set_arguments(root, f"multipath=off ifname=ens1f0:{mac(1)}")


def sriov(world: ToolkitWorld) -> None:
    """Make one card with eight virtual functions, and the representor of one of them."""
    _no_cards(world)
    root = world.tree.root
    add_card(root, "enp4s0f0", mac=mac(1))
    for number in range(8):
        add_card(root, f"enp4s0f0v{number}", mac=mac(10 + number), is_virtual_function=True)
    add_card(root, "enp4s0f0npf0vf0", mac=mac(99), assigned=RANDOM)


def thirty_cards(world: ToolkitWorld) -> None:
    """Make thirty cards with short names, which fit."""
    _no_cards(world)
    for number in range(30):
        add_card(world.tree.root, f"eno{number + 1}", mac=mac(number + 1))


def thirty_long_names(world: ToolkitWorld) -> None:
    """Make thirty cards whose names do not fit."""
    _no_cards(world)
    for number in range(30):
        add_card(world.tree.root, f"enp{10 + number // 2}s0f{number % 2}", mac=mac(number + 1))


def multipath_boot(world: ToolkitWorld) -> None:
    """Make a host whose disks are behind multipath, as its arguments say."""
    world.programs.state.state_device = "/dev/mapper/0QEMU_QEMU_HARDDISK_disk1-part4"
    set_arguments(world.tree.root, "rd.multipath=1 rd.driver.pre=dm_multipath")


def external_storage(world: ToolkitWorld) -> None:
    """Make a host that was installed for external storage, with other arguments."""
    world.tree.write(CONFIG, "os:\n  externalstorage:\n    enabled: true\n")
    set_arguments(world.tree.root, "console=ttyS0")


def old_installation(world: ToolkitWorld) -> None:
    """Make a host of an early release: without GRUB's files, and with a record of its installation without a label."""
    for path in (GRUB_ENVIRONMENT, GRUB_CUSTOM, CONFIG):
        world.tree.remove(path)
    world.tree.write(STATE_FILE, "state:\n  active: {}\n")


#: In the order of the listings.
HOSTS = (bonds, sriov, thirty_cards, thirty_long_names, multipath_boot, external_storage, old_installation)
