"""The checks of a plan whose next attempt a user requests after a failure; admission.py calls it.

The failed attempt has changed the cluster, so that less is checked than of a new plan: not the Version, which the plan
has recorded, and of the VMs only those on nodes that are left. What a failed step leaves half-way is a warning, because
the attempt mends it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import requested_attempt
from upgrade_manager.api.in_progress import taken_over
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.node_states import upgraded_names
from upgrade_manager.api.phases import PhaseName, recorded_phases
from upgrade_manager.facts.image_import import missing, named
from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.checks import (
    addons,
    backups,
    builtin_upgrade,
    cluster,
    concurrency,
    longhorn,
    machines,
    managed_charts,
    nodes,
    pairing,
    pause_list,
    vms,
)
from webhook.listings import INSTANCES, image

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject
    from webhook.cluster import ClusterReader, Listing

#: The field to which the findings belong.
FIELD = "spec.attempt"
_CREATE = "Create a new UpgradePlan"
#: As for a new plan; the check of nodes leaves out those that the plan holds cordoned.
_DENYING = (concurrency, builtin_upgrade, machines, pairing, backups, pause_list, nodes)
#: Warnings once the components may be half-way.
_HALF_WAY = (cluster, managed_charts, addons, longhorn)


class _OfNodes:
    """Reads the instances on nodes that are not upgraded, and everything else as it is."""

    def __init__(self, inner: ClusterReader, *, done: Collection[str]) -> None:
        self._inner = inner
        self._done = done

    async def list(self, listing: Listing) -> Sequence[Object]:
        """See ClusterReader."""
        found = await self._inner.list(listing)
        if listing != INSTANCES:
            return found
        return [one for one in found if objects.text(one, "status", "nodeName") not in self._done]


def is_raised(*, new: object, old: object) -> bool:
    """Return True for an update that requests another attempt; the schema allows the next one after a failure only."""
    return requested_attempt(objects.mapping(new, "spec")) != requested_attempt(objects.mapping(old, "spec"))


def checks_of(plan: object) -> list[Check]:
    """Return the checks of the plan, which has failed; the only one of a plan that has no further attempt."""
    status = objects.mapping(plan, "status")
    if why := taken_over(status):
        return [_denial("successor", f"{why}. {_CREATE}")]
    recorded = recorded_phases(status)
    is_half_way = PhaseName.CLUSTER_UPGRADE.active in recorded
    half_way = [_warning(one.CHECK) if is_half_way else one.CHECK for one in _HALF_WAY]
    found = [*(one.CHECK for one in _DENYING), _on(vms.CHECK, done=upgraded_names(status)), *half_way]
    if PhaseName.ISO_DOWNLOAD.completed in recorded:
        found.insert(0, _image_check(objects.text(status, "isoImageID")))
    return found


def _on(check: Check, *, done: Collection[str]) -> Check:
    async def find(subject: Subject) -> Iterable[Finding]:
        return await check.find(replace(subject, cluster=_OfNodes(subject.cluster, done=done)))

    return replace(check, find=find)


def _warning(check: Check) -> Check:
    async def find(subject: Subject) -> Iterable[Finding]:
        return [replace(finding, denies=False) for finding in await check.find(subject)]

    return replace(check, find=find)


def _denial(name: str, problem: str) -> Check:
    async def find(_: Subject) -> Iterable[Finding]:
        return [Finding(problem=problem)]

    return Check(name=name, field=FIELD, find=find)


def _image_check(name: str) -> Check:
    """Return the check that the ISO's image, which the failed attempt has kept, still exists."""

    async def find(subject: Subject) -> Iterable[Finding]:
        known = name.removeprefix(f"{HARVESTER_SYSTEM}/")
        if known and await subject.cluster.list(image(known)):
            return []
        why = f"{named(known)} {missing(known).why}" if known else "The plan has recorded no image of the ISO"
        return [Finding(problem=f"{why}, so that no attempt can go on with it. {_CREATE}")]

    return Check(name="image", field=FIELD, find=find)
