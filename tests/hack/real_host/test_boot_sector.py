"""GRUB's first sectors on a disk."""

from __future__ import annotations

import pytest

from hack.real_host.boot_sector import boot_sector, placed_core

BOOT = bytes(range(256)) * 2
#: A table of partitions behind the code.
DISK = bytes(440) + b"T" * 70 + b"\x55\xaa"
CORE = bytes(500) + b"\x01" + bytes(7) + b"\x2a\x00\x20\x08" + b"code" * 200


class TestBootSector:
    def test_the_partition_table_stays(self) -> None:
        assert boot_sector(DISK, BOOT, core_sector=2048)[440:] == DISK[440:]

    def test_code_loads_the_core_image_from_its_sector(self) -> None:
        written = boot_sector(DISK, BOOT, core_sector=0x1234)
        assert written[0x5C:0x64] == b"\x34\x12" + bytes(6)
        assert written[:0x5C] == BOOT[:0x5C]

    def test_drive_number_of_the_bios_is_not_trusted(self) -> None:
        written = boot_sector(DISK, BOOT, core_sector=1)
        assert written[0x64:0x6A] == b"\x64\x65\x90\x90\x68\x69"

    @pytest.mark.parametrize(("disk", "boot"), [(b"short", BOOT), (DISK, b"short")])
    def test_part_of_a_sector_is_refused(self, disk: bytes, boot: bytes) -> None:
        with pytest.raises(ValueError, match="a sector has 512 bytes"):
            boot_sector(disk, boot, core_sector=1)


class TestCoreImage:
    def test_its_block_list_begins_behind_its_first_sector(self) -> None:
        placed = placed_core(CORE, sector=2048, limit=4096)
        assert placed[500:512] == b"\x01\x08" + bytes(6) + b"\x2a\x00\x20\x08"
        assert placed[:500] + placed[512:] == CORE[:500] + CORE[512:]

    def test_image_larger_than_its_partition_is_refused(self) -> None:
        with pytest.raises(ValueError, match=f"has {len(CORE)} bytes, and its partition 1024"):
            placed_core(CORE, sector=2048, limit=1024)
