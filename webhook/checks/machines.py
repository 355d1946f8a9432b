"""Every Machine of Cluster API is Running.

facts/removal.py explains a Machine that is being deleted, also to the nodes of an upgrade (nodes/node_view.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts.removal import deletion, ways_out
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import MACHINES as RESOURCE
from webhook.check import Check, Finding
from webhook.listings import MACHINES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    machines = await subject.cluster.list(MACHINES)
    return [finding for one in machines if (finding := _finding(one))]


def _finding(machine: Object) -> Finding | None:
    name, phase = objects.name(machine), objects.text(machine, "status", "phase")
    deleted = deletion(machine)
    if deleted:
        problem = f"Machine {FLEET_LOCAL}/{name} is not Running: {deleted}"
        return Finding(problem=problem, remedies=ways_out(RESOURCE, machine))
    if phase == "Running":
        return None
    state = f"in phase {phase}, not Running" if phase else "not Running: it has no phase yet"
    show = f"kubectl describe {RESOURCE.name} -n {FLEET_LOCAL} {name}"
    wait = Remedy("Wait until it is Running, or repair it", command=show)
    return Finding(problem=f"Machine {FLEET_LOCAL}/{name} is {state}", remedies=(wait,))


CHECK = Check(name="machines", field="spec", find=_find)
