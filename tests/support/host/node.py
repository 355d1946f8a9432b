"""A guest as the node of a cluster whose Kubernetes Rancher has upgraded, for the stories of the tier `host`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.real_host.guest import booted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hack.real_host.guest import Template
    from hack.real_host.machine import Machine
    from hack.real_host.node_cluster import NodeCluster
    from hack.real_host.toolkit_pod import ToolkitPods


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The guest, and what it reaches outside."""

    machine: Machine
    pods: ToolkitPods
    cluster: NodeCluster
    template: Template
    #: Of this test.
    folder: Path
    #: Of the upgrade repository.
    port: int

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Let the guest reach API server and repository, until it reboots."""
        with self.machine.forward(self.cluster.port, self.port):
            yield

    @contextmanager
    def cut(self, name: str) -> Iterator[Machine]:
        """Boot the copy of the disk that a power cut left under this name."""
        with booted(self.folder / name, self.folder / f"{name}-boot", key=self.template.key) as machine:
            machine.wait_for_boot()
            yield machine
