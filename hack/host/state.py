"""The state of a simulated host that is not a file in its tree, kept in a file beside the tree."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from pathlib import Path

    from hack.actors.hosts import Hosts
    from upgrade_manager.kube.objects import Object


@dataclass(slots=True, kw_only=True)
class HostState:
    """The state of the host's services."""

    #: References in containerd.
    images: list[str] = field(default_factory=list)
    #: References whose images lack content, because their import was killed.
    incomplete: list[str] = field(default_factory=list)
    #: References of images that were unpacked to snapshots before any container needed them.
    unpacked: list[str] = field(default_factory=list)
    #: Ids of images that have more than one reference, by reference; other images have ids of their own.
    image_ids: dict[str, str] = field(default_factory=dict)
    #: References of the images that containers use.
    used_images: list[str] = field(default_factory=list)
    #: The operating system that the next boot starts; empty for the running one.
    next_os: str = ""
    #: The Pod whose success reboots the host; empty for none.
    reboot_after: str = ""
    #: Sources by mount point.
    mounts: dict[str, str] = field(default_factory=dict)
    #: Transient units that systemd runs.
    units: list[str] = field(default_factory=list)
    #: The device of the state partition; under /dev/mapper on a host that boots by multipath.
    state_device: str = "/dev/sda4"
    #: The service that sets the clock, its time servers, and whether one of them has answered.
    time_service: str = "chronyd.service"
    time_servers: list[str] = field(default_factory=lambda: ["192.168.0.1"])
    is_synchronised: bool = True
    #: Space that the running operating system occupies, in MiB.
    running_mib: int = 2200
    #: Free space of the state partition beside its two images, in MiB.
    free_mib: int = 9000
    #: Size of the release's root file system, and blocks of the image that elemental writes, in MiB.
    rootfs_mib: int = 2300
    image_mib: int = 2400
    #: MiB that elemental has written, by path; also what a killed elemental has left.
    written: dict[str, int] = field(default_factory=dict)
    #: Seconds that elemental takes for the tree and for the image.
    copy_seconds: float = 0.0
    #: The damage of images that elemental writes: "metadata" or "content" is lost, they are "elsewhere" on
    #: another disk, or it fails between its "renames"; empty for nothing.
    damage: str = ""
    #: Error messages of programs that fail, by the beginning of their command lines.
    failing: dict[str, str] = field(default_factory=dict)
    #: Drop-in files that systemd has read, and those with which each restarted unit runs.
    loaded_drop_ins: list[str] = field(default_factory=list)
    unit_drop_ins: dict[str, list[str]] = field(default_factory=dict)
    #: The programs that were called, in order, as one line each.
    calls: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> HostState:
        """Read the state; a new host's where the file does not exist."""
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()

    def arrange_reboot(self, hosts: Hosts, pod: Object, *, node: str) -> None:
        """Reboot the host after the Pod's success, if the Pod's command arranged it."""
        if self.reboot_after == objects.name(pod):
            hosts.install(node, self.next_os or hosts.of(node).os_image, reboot_after=objects.uid(pod))

    def boot(self) -> None:
        """Forget what a boot ends."""
        self.next_os, self.reboot_after, self.mounts, self.units = "", "", {}, []

    def save(self, path: Path) -> None:
        """Write the state."""
        partial = path.with_suffix(".new")
        partial.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        partial.replace(path)
