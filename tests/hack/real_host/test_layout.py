"""The partition table of the guest's disk."""

from __future__ import annotations

from itertools import pairwise

from hack.real_host.layout import DISK_SIZE, PARTITIONS, STATE, table_arguments

MIB = 1024 * 1024


def test_partitions_have_elementals_labels_and_sizes() -> None:
    assert [(one.label, one.mib) for one in PARTITIONS] == [
        ("", 1),
        ("COS_OEM", 64),
        ("COS_RECOVERY", 64),
        ("COS_STATE", 8192),
        ("COS_PERSISTENT", 12288),
        ("COS_GRUB", 64),
    ]


def test_partitions_follow_each_other_and_leave_both_tables_room() -> None:
    assert PARTITIONS[0].offset == MIB
    for one, following in pairwise(PARTITIONS):
        assert one.last_sector + 1 == following.sector
    assert (PARTITIONS[-1].last_sector + 1) * 512 + MIB == DISK_SIZE


def test_state_partition_begins_where_its_file_system_is_made() -> None:
    assert (STATE.number, STATE.offset, STATE.sector) == (4, 130 * MIB, 130 * 2048)


def test_table_is_written_by_sectors_types_and_names() -> None:
    arguments = table_arguments()
    assert arguments[:4] == ["--clear", "--set-alignment=1", "--new=1:2048:4095", "--typecode=1:ef02"]
    assert arguments[-6:] == [
        "--new=5:17043456:42209279",
        "--typecode=5:8300",
        "--change-name=5:COS_PERSISTENT",
        "--new=6:42209280:42340351",
        "--typecode=6:ef00",
        "--change-name=6:COS_GRUB",
    ]
