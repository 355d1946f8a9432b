"""The conditions that Rancher's planner writes: Reconciled of each Machine, and its own words for the Cluster's.

The rules are those of setMachineConditionStatus in rancher/rancher v2.14.0, pkg/capr/planner/planner.go, and of
messages.go beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.conditions import TRANSITION, with_condition
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.actors.context import ActorContext
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

RECONCILED = "Reconciled"
_NAMED = 3


class PlannerReport:
    """The planner's actions on the machines of one tier in one pass; `write` writes the Machines' conditions."""

    def __init__(self, context: ActorContext, client: Client, tier: str) -> None:
        self._context = context
        self._client = client
        self._machines = context.caches.of(MACHINES)
        self._tier = tier
        self._messages: dict[str, list[str]] = {}
        self._uncordoned: list[Object] = []
        self._draining: list[Object] = []
        self.out_of_sync: list[Object] = []
        self.ready: list[Object] = []

    def begin(self, machine: Object, message: str) -> None:
        """Begin a machine's message: the words of its other conditions, then those about its plan."""
        others = [one for one in objects.status(machine).get("conditions") or () if one.get("type") != RECONCILED]
        said = [one["message"] for one in others if one.get("status") == "False" and one.get("message")]
        self._messages[objects.name(machine)] = [*said, *([message] if message else [])]

    def say(self, machine: Object, message: str) -> None:
        """Add words to the machine's message."""
        self._messages[objects.name(machine)].append(message)

    def drains(self, machine: Object, message: str) -> None:
        """Report a machine that is draining."""
        self._draining.append(machine)
        self.say(machine, message)

    def uncordons(self, machine: Object, message: str) -> None:
        """Report a machine that waits for its uncordon."""
        self._uncordoned.append(machine)
        self.say(machine, message)

    async def write(self) -> str:
        """Write the conditions that have changed; return the first of the words for which later tiers wait."""
        found = (
            await self._set(self._uncordoned, f"uncordoning {self._tier} node(s) "),
            await self._set(self._draining, f"draining {self._tier} node(s) "),
            await self._set(self.out_of_sync, f"configuring {self._tier} node(s) "),
            await self._set(self.ready, ""),
        )
        return next(filter(None, found), "")

    async def _set(self, machines: list[Object], prefix: str) -> str:
        """Set the condition of some machines, and return why the planner waits for them.

        A condition that becomes True ends the pass, too, with the bare names of finished machines.
        """
        waits = False
        for machine in machines:
            message = self._message(machine)
            known = objects.condition(machine, RECONCILED) or {}
            waits |= bool(message) or known.get("status") != "True"
            if message and known.get("message") != message:
                await self._patch(machine, "Unknown", "Waiting", message)
            elif not message and known.get("status") != "True":
                await self._patch(machine, "True", RECONCILED, "")
        detail = self._message(machines[0]) if len(machines) == 1 else ""
        return prefix + _at_most_three(machines) + (f": {detail}" if detail else "") if waits else ""

    def _message(self, machine: Object) -> str:
        return ", ".join(self._messages.get(objects.name(machine), ()))

    async def _patch(self, machine: Object, status: str, reason: str, message: str) -> None:
        old = objects.status(machine).get("conditions") or []
        at = self._context.timestamp()
        new = with_condition(old, RECONCILED, status, reason=reason, message=message, at=at, time=TRANSITION)
        patch = MergePatch({"status": {"conditions": new}}).at(objects.resource_version(machine))
        await self._machines.patch(self._client, machine, patch)


def _at_most_three(machines: Iterable[Object]) -> str:
    names = sorted(map(objects.name, machines))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ",".join(names[:_NAMED]) + more
