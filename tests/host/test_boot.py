"""The guest itself, and the boots on which the other stories rely: none of these needs elemental or the toolkit."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.real_host import guest
from hack.real_host.guest import ACTIVE, PASSIVE, STATE, Template, booted
from hack.real_host.machine import Machine
from hack.real_host.root_tree import OLD_OS

pytestmark = [pytest.mark.host("guest"), pytest.mark.timeout(3600)]


def test_grub_boots_the_active_image_read_only(machine: Machine) -> None:
    assert guest.os_name(machine) == OLD_OS
    assert guest.running_image(machine) == ACTIVE
    assert "cos-img/filename=/cOS/active.img" in machine.call("cat", "/proc/cmdline")
    assert machine.run("touch", f"{STATE}/cOS/new").status != 0
    assert machine.run("touch", "/new").status != 0


def test_fallback_boots_after_the_reset_of_a_damaged_os(machine: Machine) -> None:
    boot = machine.wait_for_boot()
    guest.damage_active(machine)
    # Both names have moved by now; the kernel follows the file.
    assert guest.running_image(machine) == PASSIVE
    machine.run("systemctl", "reboot", seconds=60)
    machine.wait_for_console("has no /sbin/init: waiting for a reset")
    machine.reset()
    machine.wait_for_boot(after=boot)
    assert guest.running_image(machine) == PASSIVE
    assert "cos-img/filename=/cOS/passive.img" in machine.call("cat", "/proc/cmdline")
    assert machine.console.count("starting active.img") == 2
    assert machine.console.count("starting passive.img") == 1


def test_power_cut_leaves_a_disk_that_boots(machine: Machine, template: Template, tmp_path: Path) -> None:
    guest.remount(machine, "rw")
    writing = machine.start(
        "dd", "if=/dev/urandom", f"of={STATE}/cOS/transition.img", "bs=1M", "count=2000", log=tmp_path / "dd.log"
    )
    machine.wait_until(lambda: "transition.img" in guest.names(machine), "written to")
    machine.power_cut(tmp_path / "cut")
    assert writing.poll() is None
    machine.call("pkill", "dd")
    writing.wait()
    with booted(tmp_path / "cut", tmp_path / "cut-boot", key=template.key) as copy:
        copy.wait_for_boot()
        assert (guest.os_name(copy), guest.running_image(copy)) == (OLD_OS, ACTIVE)
