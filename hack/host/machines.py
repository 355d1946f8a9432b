"""The hosts of a simulated cluster's nodes as folders in memory, for commands in this process."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.host import disk, iso, rke2_manifests, tree
from hack.host.programs import SimulatedPrograms
from upgrade_manager.toolkit.host.host_tree import HostTree

if TYPE_CHECKING:
    from hack.actors.hosts import Hosts

#: A file system in memory, because the commands write durably.
_MEMORY = Path("/dev/shm")  # noqa: S108


@dataclass(slots=True)
class Machine:
    """The host of a node."""

    tree: HostTree
    programs: SimulatedPrograms
    #: The number of its boots that the tree has followed.
    boots: int


class Machines:
    """Creates the folders when they are first needed, until `close`."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._machines: dict[str, Machine] = {}
        self._folder: Path | None = None
        disk.simulate()

    def of(self, node: str) -> Machine:
        """Return the host as it is after its last boot."""
        host, found = self._hosts.of(node), self._machines.get(node)
        if found is None:
            root = self._root() / node
            tree.fill(root, os_image=host.os_image, held=False)
            if self._hosts.is_management(node):
                rke2_manifests.stage(root, host.kubelet)
            host.folder = root
            found = self._machines[node] = Machine(HostTree(root), SimulatedPrograms(root), host.boots)
        elif found.boots != host.boots:
            tree.boot(found.tree.root, os_image=host.os_image, mounts=found.programs.state.mounts)
            found.programs.state.boot()
            found.boots = host.boots
        return found

    def mounted_iso(self, files: dict[str, bytes]) -> Path:
        """Return a folder with the files of the ISO."""
        folder = self._root() / "iso"
        iso.write(folder, files)
        return folder

    def close(self) -> None:
        """Remove the folders."""
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def _root(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="simulated-hosts-", dir=_MEMORY if _MEMORY.is_dir() else None))
        return self._folder
