"""A Harvester node in a virtual machine: a disk in elemental's layout, GRUB, a kernel, systemd and containerd.

tests/host boots it; docs/real-host.md says which of its parts are real.
"""

__all__ = ["parts"]
