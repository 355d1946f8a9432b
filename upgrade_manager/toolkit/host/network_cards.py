"""The physical network cards (NICs) of the host, by the kernel's files; os/kernel_arguments.py keeps their names.

The kernel gives each device a folder in /sys/class/net. Bonds, bridges and VLANs have no link `device` there, virtual
functions of SR-IOV have `device/physfn`. In a bond a card shows the bond's MAC, and its own in another file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.toolkit.host.host_tree import HostTree

_FOLDER = "/sys/class/net"
#: Names that systemd derives from the place of a card, which another driver may change.
_PREFIX = "en"
#: The card's own MAC in a bond, else its present one.
_ADDRESSES = ("bonding_slave/perm_hwaddr", "address")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
#: The kernel's mark of a MAC that it has made up, which the next boot changes (include/uapi/linux/netdevice.h).
_RANDOM = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCard:
    """A physical NIC."""

    name: str
    #: In lower case, with colons.
    mac: str


def physical_cards(tree: HostTree) -> list[NetworkCard]:
    """Return the NICs by name. Raises StepFailed for a file of the kernel that cannot be read."""
    try:
        return list(_cards(tree))
    except OSError as error:
        raise StepFailed(f"the node's NICs cannot be read: {error.filename}: {error.strerror or error}") from error


def _cards(tree: HostTree) -> Iterator[NetworkCard]:
    for name in tree.names(_FOLDER):
        folder = f"{_FOLDER}/{name}"
        if not name.startswith(_PREFIX) or not tree.is_there(f"{folder}/device"):
            continue
        is_virtual = tree.is_there(f"{folder}/device/physfn")
        if is_virtual or _line(tree, f"{folder}/addr_assign_type") == _RANDOM:
            continue
        # A card that is unplugged meanwhile has neither file.
        mac = next((mac for file in _ADDRESSES if (mac := _line(tree, f"{folder}/{file}").lower())), "")
        if _MAC.fullmatch(mac):
            yield NetworkCard(name=name, mac=mac)


def _line(tree: HostTree, path: str) -> str:
    """Return the file's line, empty without the file."""
    return (tree.read(path) or "").strip()
