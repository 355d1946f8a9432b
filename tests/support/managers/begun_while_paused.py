"""Sees what a manager begins while its plan is paused, on the embedded API server."""

from __future__ import annotations

from hack.apiserver.history import Entry
from hack.simulation import Simulation
from upgrade_manager.api.keys import ANNOTATION_PRE_HOOK, LABEL_PLAN_UID
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object

CREATED = frozenset({"jobs.batch", "plans.upgrade.cattle.io", "virtualmachineimages.harvesterhci.io"})
_PLANS, _SECRETS, _CLUSTERS = "upgradeplans.management.harvesterhci.io", "secrets", "clusters.provisioning.cattle.io"


class BegunWhilePaused:
    """Objects that are created, Jobs that are resumed, and requests to Rancher, while the plan says that it holds."""

    def __init__(self, simulation: Simulation) -> None:
        self.found: list[str] = []
        #: The number of pauses that the plan has shown.
        self.pauses = 0
        self._is_held = False
        simulation.server.storage.observers.append(self._observe)

    def _observe(self, collection: str, entry: Entry) -> None:
        new, old = entry.stored.object, entry.previous.object if entry.previous else None
        if collection == _PLANS:
            was_held, self._is_held = self._is_held, holds(new)
            self.pauses += self._is_held and not was_held
        elif self._is_held and begins(collection, new, old):
            self.found.append(f"{collection} {objects.name(new)}")


def holds(plan: Object) -> bool:
    """Return True for a paused plan of which nothing runs."""
    return bool(objects.status(plan).get("holds"))


def begins(collection: str, new: Object, old: Object | None) -> bool:
    """Return True for a change by which something of an upgrade begins."""
    if old is None:
        is_created_by_plan = LABEL_PLAN_UID in objects.labels(new)
        # The system-upgrade-controller creates the Jobs of Plans.
        return collection in CREATED and is_created_by_plan and objects.namespace(new) != "cattle-system"
    if collection == _SECRETS:
        before, after = (objects.annotations_of(one).get(ANNOTATION_PRE_HOOK, "") for one in (old, new))
        return after not in {"", before}
    if collection == _CLUSTERS:
        return _generation(new) != _generation(old)
    return (
        collection == "jobs.batch"
        and objects.is_true(old, "spec", "suspend")
        and not objects.is_true(new, "spec", "suspend")
    )


def _generation(cluster: Object) -> object:
    return objects.mapping(cluster, "spec", "rkeConfig").get("provisionGeneration")
