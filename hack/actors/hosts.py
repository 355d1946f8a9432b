"""The machines that the nodes run on: what is installed on a disk is no API object, yet survives every actor."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hack.cluster.scenario import Scenario
    from upgrade_manager.kube.objects import Object

_NAMESPACE = uuid.UUID("5b1d9a52-7f0e-4c38-9a7e-3c0d5d3f4a11")


@dataclass(slots=True)
class Host:
    """One machine."""

    name: str
    os_image: str
    kubelet: str
    #: What the next boot starts; the running one unless another was installed.
    next_os: str = ""
    up: bool = True
    boots: int = 0
    #: The Pod after whose end the machine reboots.
    reboot_after: str = ""
    #: A reboot was asked for and has not begun.
    rebooting: bool = False

    @property
    def boot_id(self) -> str:
        """Another one after each boot."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.name}/{self.boots}"))

    @property
    def machine_id(self) -> str:
        """The same for ever."""
        return uuid.uuid5(_NAMESPACE, self.name).hex


class Hosts:
    """All machines by node name; whoever plays a part of one is told when another part changes it."""

    def __init__(self, scenario: Scenario) -> None:
        software = scenario.software
        self._default = (software.os, software.kubernetes)
        self._management = [name for name in scenario.nodes.names if scenario.nodes.is_management(name)]
        self._hosts = {name: Host(name, software.os, software.kubernetes) for name in scenario.nodes.names}
        self._listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Have the node's name told whenever its machine changes."""
        self._listeners.append(listener)

    def names(self) -> Iterable[str]:
        """All nodes that ever were."""
        return tuple(self._hosts)

    def of(self, node: str) -> Host:
        """The machine of a node; a node that joined brings one along."""
        return self._hosts.setdefault(node, Host(node, *self._default))

    def adopt(self, node: Object) -> Host:
        """The machine of a node object; an unknown one runs what the object says."""
        name = objects.name(node)
        if name not in self._hosts:
            info = objects.status(node).get("nodeInfo") or {}
            os_image, kubelet = self._default
            self._hosts[name] = Host(name, info.get("osImage") or os_image, info.get("kubeletVersion") or kubelet)
        return self._hosts[name]

    @property
    def have_quorum(self) -> bool:
        """Whether most of the management nodes' machines are up: without them there is no etcd, and no API server."""
        return sum(self._hosts[name].up for name in self._management) * 2 > len(self._management)

    def upgrade_kubelet(self, node: str, version: str) -> None:
        """Another kubelet runs from now on."""
        self.of(node).kubelet = version
        self._tell(node)

    def install(self, node: str, os_image: str, *, reboot_after: str) -> None:
        """Put an operating system beside the running one, and boot it after that Pod."""
        host = self.of(node)
        host.next_os, host.reboot_after = os_image, reboot_after

    def pod_ended(self, node: str, pod: str) -> None:
        """The Pod has succeeded: the reboot that waited for it begins."""
        host = self.of(node)
        if host.reboot_after == pod:
            host.reboot_after, host.rebooting = "", True
            self._tell(node)

    def power_off(self, node: str) -> None:
        """The machine goes down."""
        host = self.of(node)
        host.up, host.rebooting = False, False
        self._tell(node)

    def power_on(self, node: str, *, keep_os: bool = False) -> None:
        """The machine boots what was installed last."""
        host = self.of(node)
        host.up, host.boots = True, host.boots + 1
        if not keep_os:
            host.os_image = host.next_os or host.os_image
        host.next_os = ""
        self._tell(node)

    def _tell(self, node: str) -> None:
        for listener in self._listeners:
            listener(node)
