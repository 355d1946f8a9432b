"""The network devices of a simulated host, as the kernel shows them in /sys/class/net, and GRUB's variables.

A device of hardware has a link `device`, a virtual function of SR-IOV has `device/physfn` (Linux 6.4:
drivers/pci/iov.c, pci_iov_sysfs_link), and a device in a bond `bonding_slave/perm_hwaddr`
(drivers/net/bonding/bond_sysfs_slave.c).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_NET = "sys/class/net"
#: The arguments of v1.7.1's installer (harvester/harvester-installer v1.7.1: pkg/util/util.go:556).
INSTALLED = "multipath=off"
#: Bytes of GRUB's file.
_BLOCK = 1024
#: The mark of a MAC that the kernel has made up.
RANDOM = 1


def fill(root: Path) -> None:
    """Add two cards, a bridge, and the arguments with which the host boots."""
    for number in (1, 2):
        add_card(root, f"enp{number}s0", mac=mac(number))
    add_device(root, "mgmt-br", mac=mac(1))
    set_arguments(root, INSTALLED)
    config = root / "oem/harvester.config"
    config.write_text("os:\n  externalstorage:\n    enabled: false\n", encoding="utf-8")
    (root / "oem/grubcustom").touch()


def mac(number: int) -> str:
    """Return the MAC of this number."""
    return f"52:54:00:00:{number // 256:02x}:{number % 256:02x}"


def add_device(root: Path, name: str, *, mac: str, assigned: int = 0) -> Path:
    """Add a device without hardware, and return its folder."""
    folder = root / _NET / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "address").write_text(f"{mac}\n", encoding="utf-8")
    (folder / "addr_assign_type").write_text(f"{assigned}\n", encoding="utf-8")
    return folder


def add_card(
    root: Path, name: str, *, mac: str, bond: str = "", is_virtual_function: bool = False, assigned: int = 0
) -> None:
    """Add a device of hardware; one in a bond shows the bond's MAC."""
    folder = add_device(root, name, mac=bond or mac, assigned=assigned)
    (folder / "device").mkdir(exist_ok=True)
    if bond:
        (folder / "bonding_slave").mkdir(exist_ok=True)
        (folder / "bonding_slave/perm_hwaddr").write_text(f"{mac}\n", encoding="utf-8")
    if is_virtual_function:
        (folder / "device/physfn").mkdir(exist_ok=True)


def set_arguments(root: Path, value: str | None) -> None:
    """Write GRUB's variables, as grub2-editenv does."""
    path = root / "oem/grubenv"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = "" if value is None else f"third_party_kernel_args={value}\n"
    path.write_text(f"# GRUB Environment Block\n{line}".ljust(_BLOCK, "#"), encoding="utf-8")
