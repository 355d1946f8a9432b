"""The partitions of the guest's disk: those of elemental, with its labels. Nothing here reads or writes a file.

disk.py makes the disk.
"""

from __future__ import annotations

from dataclasses import dataclass

SECTOR = 512
#: elemental 1.3.0 writes GRUB's variables to this partition, and ends with a panic without it (pkg/action/upgrade.go).
#: The guest starts by BIOS all the same.
EFI_LABEL = "COS_GRUB"
_MIB = 1024 * 1024
#: Free in front of the first partition, and behind the last one for the second copy of the table.
_MARGIN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition of the disk."""

    number: int
    #: Of the partition and of its file system; the first partition has none.
    label: str
    mib: int
    begin_mib: int

    @property
    def kind(self) -> str:
        """The type as sgdisk names it: BIOS boot partition, EFI system partition, or Linux file system."""
        return {"": "ef02", EFI_LABEL: "ef00"}.get(self.label, "8300")

    @property
    def offset(self) -> int:
        """The first byte on the disk."""
        return self.begin_mib * _MIB

    @property
    def sector(self) -> int:
        """The first sector on the disk."""
        return self.offset // SECTOR

    @property
    def last_sector(self) -> int:
        """The last sector on the disk."""
        return (self.begin_mib + self.mib) * _MIB // SECTOR - 1


def _partitions() -> tuple[Partition, ...]:
    sizes = {"": 1, "COS_OEM": 64, "COS_RECOVERY": 64, "COS_STATE": 8 * 1024, "COS_PERSISTENT": 12 * 1024}
    sizes[EFI_LABEL] = 64
    found, begin = [], _MARGIN
    for number, (label, mib) in enumerate(sizes.items(), start=1):
        found.append(Partition(number=number, label=label, mib=mib, begin_mib=begin))
        begin += mib
    return tuple(found)


PARTITIONS = _partitions()
BIOS, _, _, STATE, _, EFI = PARTITIONS
#: Bytes of the whole disk.
DISK_SIZE = (EFI.begin_mib + EFI.mib + _MARGIN) * _MIB


def table_arguments() -> list[str]:
    """Return sgdisk's arguments that write the table."""
    arguments = ["--clear", "--set-alignment=1"]
    for one in PARTITIONS:
        arguments += [f"--new={one.number}:{one.sector}:{one.last_sector}", f"--typecode={one.number}:{one.kind}"]
        if one.label:
            arguments.append(f"--change-name={one.number}:{one.label}")
    return arguments
