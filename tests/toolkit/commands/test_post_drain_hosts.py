"""Listings of `node post-drain` on hosts of several kinds: the changes beside the operating system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hack.host.network import RANDOM, add_card, add_device, mac, set_arguments
from tests.support.toolkit.os_upgrade import is_upgraded, keeps_old_os, os_world
from tests.support.toolkit.toolkit import ToolkitWorld
from tests.support.toolkit.toolkit_transcript import golden, transcript
from upgrade_manager.toolkit.host.host_paths import GRUB_CUSTOM, GRUB_ENVIRONMENT, STATE_FILE
from upgrade_manager.toolkit.os.kernel_arguments import current_value
from upgrade_manager.toolkit.run.errors import StepFailed

COMMAND = "node post-drain"
#: The steps that differ between hosts.
STEPS = ("-kernel-arguments", "create-grub-files", "check-nic-names", "move-state-file", "install-os", "arrange-reboot")
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


HOSTS = (bonds, sriov, thirty_cards, thirty_long_names, multipath_boot, external_storage, old_installation)


async def _listing(world: ToolkitWorld) -> str:
    """Return the listing of the steps that differ, and the arguments of the next boot."""
    try:
        text = await transcript(world, COMMAND)
    except StepFailed as error:
        assert keeps_old_os(world)
        return f"fails: {error}\n"
    assert is_upgraded(world) or world.tree.exists(f"{STATE_FILE}.bak")
    kept, shows = [], False
    for line in text.splitlines():
        if not line.startswith(" "):
            shows = any(step in line for step in STEPS)
        if shows:
            kept.append(line.partition(" ")[2] if not line.startswith(" ") and "/" in line[:5] else line)
    return "\n".join([*kept, f"the next boot: {current_value(world.tree)}"]) + "\n"


@pytest.mark.parametrize("build", HOSTS, ids=lambda build: build.__name__)
async def test_golden_run_on_a_host(tmp_path: Path, build: Callable[[ToolkitWorld], None]) -> None:
    async with os_world(tmp_path) as world:
        build(world)
        listing = await _listing(world)
        assert listing == golden(f"post-drain-{build.__name__.replace('_', '-')}", listing)


@pytest.mark.parametrize(
    "build", [host for host in HOSTS if host is not thirty_long_names], ids=lambda one: one.__name__
)
async def test_second_run_changes_nothing(tmp_path: Path, build: Callable[[ToolkitWorld], None]) -> None:
    async with os_world(tmp_path) as world:
        build(world)
        await world.run(COMMAND)
        listing = await transcript(world, COMMAND)
        assert not [line for line in listing.splitlines() if line.startswith("    file")]
