"""VMs that users' PodDisruptionBudgets keep from being stopped, and the annotation by which a Job reports such VMs.

The Jobs stop no VM whose launcher Pod a budget without a disruption left selects (toolkit/vms/stop_permission.py);
blockers/forbidden_stops.py names these budgets. evictions.py has the API server's rules for evictions, which are not
requested: KubeVirt refuses each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.facts.evictions import PodIndex, is_of_kubevirt, is_unobserved
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from upgrade_manager.kube.objects import Object

#: KubeVirt's labels of the Pods in which VMs run (v1.5 to v1.7): their kind, and the uid of the instance.
LAUNCHERS = "kubevirt.io=virt-launcher"
_INSTANCE_LABEL = "kubevirt.io/created-by"
#: VMs that the annotation names; further VMs wait for the same or other budgets.
MAX_REPORTED = 50


def disruptions_left(budget: Object) -> int:
    """Return the number of Pods that the budget lets go; 0 also until the disruption controller has seen its spec."""
    return 0 if is_unobserved(budget) else objects.number(budget, "status", "disruptionsAllowed") or 0


class Permissions:
    """The stops that users' budgets permit; each one counts, because a budget's status follows later."""

    def __init__(self, budgets: Iterable[Object], launchers: Sequence[Object]) -> None:
        """`budgets` and `launchers` are read at the same time; KubeVirt's own budgets do not count."""
        index = PodIndex([pod for pod in launchers if not is_final(pod)])
        self._budgets: dict[str, list[Object]] = {}
        self._left: dict[str, int] = {}
        for budget in budgets:
            if is_of_kubevirt(budget):
                continue
            self._left[objects.uid(budget)] = disruptions_left(budget)
            for pod in index.selected(budget):
                self._budgets.setdefault(objects.labels(pod).get(_INSTANCE_LABEL, ""), []).append(budget)

    def budgets_of(self, instance: Object) -> Sequence[Object]:
        """Return the budgets that select the instance's launcher Pod."""
        return self._budgets.get(objects.uid(instance), ())

    def forbidding(self, instance: Object) -> list[Object]:
        """Return the budgets that let no Pod go, whichever VM is stopped."""
        return [one for one in self.budgets_of(instance) if not disruptions_left(one)]

    def is_used_up(self, instance: Object) -> bool:
        """Return True if a budget lets no further Pod go until another VM that it selects has stopped."""
        return any(self._left[objects.uid(one)] < 1 for one in self.budgets_of(instance))

    def use(self, instance: Object) -> None:
        """Count a stop that is requested."""
        for budget in self.budgets_of(instance):
            self._left[objects.uid(budget)] -= 1


def report_of(names: Sequence[str], *, since: str) -> str:
    """Return the value of the annotation: these VMs, and the time since which the first of them may not be stopped."""
    return f"{since} {','.join(names[:MAX_REPORTED])}"


def read_report(value: object) -> tuple[datetime, tuple[str, ...]] | None:
    """Return the time and the VMs of the annotation; None for another text."""
    since, _, names = value.partition(" ") if isinstance(value, str) else ("", "", "")
    time = parse_time(since)
    found = tuple(name for name in names.split(",") if all(name.partition("/")))[:MAX_REPORTED]
    return (time, found) if time is not None and found else None
