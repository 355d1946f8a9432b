"""The state of KubeVirt itself, as its operator reports it.

The command restore-vm (toolkit/vms/kubevirt.py) waits until KubeVirt serves, the cluster upgrade
(toolkit/charts/system_services.py) until its upgrade has ended.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.facts.condition_words import condition_words
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.kube.objects import Object

#: The KubeVirt object of Harvester.
KUBEVIRT = "kubevirt"
#: The object in messages.
NAME = f"KubeVirt {HARVESTER_SYSTEM}/{KUBEVIRT}"
#: The conditions of a KubeVirt that starts VMs, with their status.
SERVES: Mapping[str, str] = MappingProxyType({"Available": "True"})
#: The conditions of a KubeVirt whose upgrade has ended.
SETTLED: Mapping[str, str] = MappingProxyType({"Available": "True", "Progressing": "False", "Degraded": "False"})


def unmet(kubevirt: Object | None, wanted: Mapping[str, str] = SERVES) -> str:
    """Return why KubeVirt does not exist, is not deployed, or does not meet these conditions; empty if it does."""
    if kubevirt is None:
        return f"{NAME} does not exist"
    phase = objects.text(kubevirt, "status", "phase")
    if phase != "Deployed":
        return f"{NAME} is not deployed; its phase is {phase or 'not set'}"
    for type_, status in wanted.items():
        condition = objects.condition(kubevirt, type_)
        found = objects.text(condition, "status") or "Unknown"
        if found != status:
            return f"{NAME}: {type_} is {found}: {condition_words(condition) or 'no reason is reported'}"
    return ""
