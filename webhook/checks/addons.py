"""No Addon is being enabled, disabled or updated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.facts import addons
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import ADDONS as RESOURCE
from webhook.check import Check, Finding
from webhook.listings import ADDONS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject

#: The states in which nothing happens, by spec.enabled (Harvester's IsAddonOnProcessing).
_SETTLED = {True: frozenset({"AddonDeploySuccessful"}), False: frozenset({"", "AddonDisabled"})}


async def _find(subject: Subject) -> list[Finding]:
    found = await subject.cluster.list(ADDONS)
    return [finding for addon in found if (finding := _finding(addon))]


def _finding(addon: Object) -> Finding | None:
    enabled, state = objects.is_true(addon, "spec", "enabled"), objects.text(addon, "status", "status")
    if state in _SETTLED[enabled]:
        return None
    wanted, place = "enabled" if enabled else "disabled", f"-n {objects.text(addon, 'metadata', 'namespace')}"
    show = f"kubectl describe {RESOURCE.name} {place} {objects.name(addon)}"
    return Finding(
        problem=f"{addons.named(addon)} is {wanted}, but in state {addons.state(addon)}",
        remedies=(Remedy("Wait until it has settled, or repair it", command=show),),
    )


CHECK = Check(name="addons", field="spec", find=_find)
