"""Which actors of a running cluster are frozen: they hang, or their process does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM, HARVESTER_SYSTEM

if TYPE_CHECKING:
    from collections.abc import Callable

#: The process of each actor that has one: its container and its Deployment have that name, where they exist.
PROCESSES = {
    "UpgradeController": "system-upgrade-controller",
    "Planner": "rancher",
    "Drainer": "rancher",
    "PlanSecrets": "rancher",
    "Rancher": "rancher",
    "ImageController": "cdi-deployment",
    "VirtualMachineController": "virt-controller",
    "EvacuationController": "virt-controller",
    "MigrationController": "virt-controller",
}
#: Where the Deployments are.
NAMESPACES = {
    "system-upgrade-controller": CATTLE_SYSTEM,
    "rancher": CATTLE_SYSTEM,
    "cdi-deployment": HARVESTER_SYSTEM,
    "virt-controller": HARVESTER_SYSTEM,
}
#: Images cannot be pulled while it is frozen.
REGISTRY = "Registry"
#: The same on one node, by its name.
_REGISTRY_OF = "Registry."
#: Containers do not start while it is frozen.
RUNTIME = "ContainerRuntime"
#: The Pods of the upgrade repository.
REPOSITORY = "repo"
#: The kubelet of a node, by its name.
_KUBELET = "Kubelet."
#: The boot loader of a node, by its name: while it is frozen, the node boots the old operating system.
_BOOT = "Boot."


def kubelet_of(node: str) -> str:
    """Return the name of a node's kubelet."""
    return _KUBELET + node


def registry_of(node: str) -> str:
    """Return the name of what a node pulls images from: while it is frozen, the node has and gets none."""
    return _REGISTRY_OF + node


def boot_of(node: str) -> str:
    """Return the name of a node's boot loader."""
    return _BOOT + node


class Freezer:
    """Freezes actors, kubelets and processes by name; a frozen process freezes its actors, and fails its probes.

    A frozen actor finishes what it has begun, then does nothing until it is thawed.
    """

    def __init__(self) -> None:
        #: By name: who has frozen it. It acts again when all have thawed it.
        self._frozen: dict[str, set[str]] = {}
        self._absent: set[str] = set()
        self._listeners: list[Callable[[str], None]] = []

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Register a listener that gets the name of what is frozen or thawed."""
        self._listeners.append(listener)

    def freeze(self, name: str, *, by: str = "test") -> None:
        """Let it hang."""
        self._frozen.setdefault(name, set()).add(by)
        self._notify(name)

    def thaw(self, name: str, *, by: str = "test") -> None:
        """Let it act again."""
        self._frozen.get(name, set()).discard(by)
        self._notify(name)

    def set_running(self, process: str, *, is_running: bool) -> None:
        """Record whether a Pod of the process is available."""
        (self._absent.discard if is_running else self._absent.add)(process)
        self._notify(process)

    def hangs(self, name: str) -> bool:
        """Report whether this actor or process hangs."""
        return bool(self._frozen.get(name))

    def is_frozen(self, actor: str) -> bool:
        """Report whether the actor does nothing: it hangs, its process does, or its process does not run."""
        process = PROCESSES.get(actor, "")
        return self.hangs(actor) or self.hangs(process) or process in self._absent

    def _notify(self, name: str) -> None:
        for listener in self._listeners:
            listener(name)
