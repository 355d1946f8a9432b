"""Harvester's own upgrade is not running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADES as RESOURCE
from webhook.check import Check, Finding
from webhook.listings import UPGRADES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject

_STATE = "harvesterhci.io/upgradeState"
_CLEANUP = "harvesterhci.io/upgradeCleanup"
#: Final values of an Upgrade's state label, which are not phases of Pods.
_ENDED = ("Succeeded", "Failed")


async def _find(subject: Subject) -> list[Finding]:
    upgrades = await subject.cluster.list(UPGRADES)
    return [finding for upgrade in upgrades if (finding := _finding(upgrade))]


def _finding(upgrade: Object) -> Finding | None:
    """Return why the Upgrade blocks other upgrades, by the rule of Harvester's webhook; None if it does not."""
    labels = objects.strings(upgrade, "metadata", "labels")
    state = labels.get(_STATE, "")
    if state not in _ENDED:
        problem = f"in progress ({f'state {state}' if state else 'no state yet'})"
    elif labels.get(_CLEANUP) == "Pending":
        problem = "still cleaning up"
    else:
        return None
    name = objects.name(upgrade)
    show = f"kubectl describe {RESOURCE.name} -n {HARVESTER_SYSTEM} {name}"
    wait = Remedy("Wait until it has ended", command=show)
    return Finding(problem=f"Upgrade {HARVESTER_SYSTEM}/{name} is {problem}", remedies=(wait,))


CHECK = Check(name="built-in upgrade", field="spec", find=_find)
