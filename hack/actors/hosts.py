"""The hosts of the nodes: state on disk that is not an API object and outlives the actors."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

_NAMESPACE = uuid.UUID("5b1d9a52-7f0e-4c38-9a7e-3c0d5d3f4a11")


@dataclass(slots=True)
class Host:
    """One host."""

    name: str
    os_image: str
    kubelet: str
    #: The operating system of the next boot; empty for the running one.
    next_os: str = ""
    up: bool = True
    boots: int = 0
    #: The Pod whose end starts the reboot.
    reboot_after: str = ""
    #: A reboot is requested and has not begun.
    rebooting: bool = False
    #: The folder of its files, once a command has run on it.
    folder: Path | None = None

    @property
    def boot_id(self) -> str:
        """Return the boot ID, which changes with each boot."""
        return str(_uuid(f"{self.name}/{self.boots}"))

    @property
    def machine_id(self) -> str:
        """Return the machine ID, which never changes."""
        return _uuid(self.name).hex


@lru_cache
def _uuid(name: str) -> uuid.UUID:
    """Return the name's UUID; every status of a node has two."""
    return uuid.uuid5(_NAMESPACE, name)


class Hosts:
    """All hosts by node name; listeners are called when a host changes."""

    def __init__(self, scenario: Scenario) -> None:
        software = scenario.software
        self._default = (software.os, software.kubernetes)
        self._management = [name for name in scenario.nodes.names if scenario.nodes.is_management(name)]
        self._hosts = {name: Host(name, software.os, software.kubernetes) for name in scenario.nodes.names}
        #: Sentences about what must not happen in an upgrade, and happened.
        self.undue: list[str] = []
        self._listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Register a listener that gets the node's name whenever its host changes."""
        self._listeners.append(listener)

    def names(self) -> Iterable[str]:
        """Return the names of all nodes, including deleted ones."""
        return tuple(self._hosts)

    def of(self, node: str) -> Host:
        """Return the host of a node; a joining node gets a new one."""
        return self._hosts.setdefault(node, Host(node, *self._default))

    def is_management(self, node: str) -> bool:
        """Report whether the host runs the control plane."""
        return node in self._management

    def adopt(self, node: Object) -> Host:
        """Return the host of a Node object; an unknown host runs the versions in the object's status."""
        name = objects.name(node)
        if name not in self._hosts:
            info = objects.status(node).get("nodeInfo") or {}
            os_image, kubelet = self._default
            self._hosts[name] = Host(name, info.get("osImage") or os_image, info.get("kubeletVersion") or kubelet)
        return self._hosts[name]

    @property
    def have_quorum(self) -> bool:
        """Report whether most management hosts are up: etcd, and so the API server, needs that quorum."""
        return sum(self._hosts[name].up for name in self._management) * 2 > len(self._management)

    def upgrade_kubelet(self, node: str, version: str) -> None:
        """Replace the kubelet's version."""
        self.of(node).kubelet = version
        self._notify(node)

    def install(self, node: str, os_image: str, *, reboot_after: str) -> None:
        """Install an operating system beside the running one; the host boots it when the Pod ends."""
        host = self.of(node)
        host.next_os, host.reboot_after = os_image, reboot_after

    def pod_ended(self, node: str, pod: str) -> None:
        """Start the reboot that waits for this Pod."""
        host = self.of(node)
        if host.reboot_after == pod:
            host.reboot_after, host.rebooting = "", True
            self._notify(node)

    def boot_again(self, node: str) -> None:
        """Restart a host that has not booted the operating system that was installed last."""
        host = self.of(node)
        if host.up and host.next_os and not host.reboot_after:
            host.rebooting = True
            self._notify(node)

    def power_off(self, node: str) -> None:
        """Power the host off."""
        host = self.of(node)
        host.up, host.rebooting = False, False
        self._notify(node)

    def power_on(self, node: str, *, keep_os: bool = False) -> None:
        """Boot the operating system that was installed last."""
        host = self.of(node)
        host.up, host.boots = True, host.boots + 1
        if not keep_os:
            host.os_image, host.next_os = host.next_os or host.os_image, ""
        self._notify(node)

    def _notify(self, node: str) -> None:
        for listener in self._listeners:
            listener(node)
