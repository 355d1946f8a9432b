"""GRUB's first sectors on a disk that no kernel has attached: bytes in, bytes out.

grub-bios-setup writes them to a block device only. Offsets are those of GRUB 2.06: include/grub/i386/pc/boot.h, and the
block list at the end of the first sector of its core image (include/grub/offsets.h).
"""

from __future__ import annotations

import struct

from hack.real_host.layout import SECTOR

#: Up to the partition table.
_CODE = 440
#: A jump that GRUB replaces by two no-operations on hard disks, where the BIOS passes a wrong drive number.
_DRIVE_CHECK, _NO_OPERATIONS = 0x66, b"\x90\x90"
#: The sector at which the core image begins.
_CORE_SECTOR = 0x5C
#: The first entry of the core image's block list, which grows downwards from the end of its first sector.
_BLOCK_LIST = SECTOR - 12


def boot_sector(disk: bytes, boot: bytes, *, core_sector: int) -> bytes:
    """Return the disk's first sector with GRUB's code; the partition table stays."""
    if min(len(disk), len(boot)) < SECTOR:
        raise ValueError(f"a sector has {SECTOR} bytes: the disk has {len(disk)}, boot.img has {len(boot)}")
    sector = bytearray(boot[:_CODE] + disk[_CODE:SECTOR])
    sector[_DRIVE_CHECK : _DRIVE_CHECK + 2] = _NO_OPERATIONS
    struct.pack_into("<Q", sector, _CORE_SECTOR, core_sector)
    return bytes(sector)


def placed_core(core: bytes, *, sector: int, limit: int) -> bytes:
    """Return the core image for its place on the disk. Raises ValueError if it is larger than its partition."""
    if len(core) > limit:
        raise ValueError(f"GRUB's core image has {len(core)} bytes, and its partition {limit}")
    placed = bytearray(core)
    # The first sector loads the others, which follow it; their number and their place in memory are right already.
    struct.pack_into("<Q", placed, _BLOCK_LIST, sector + 1)
    return bytes(placed)
