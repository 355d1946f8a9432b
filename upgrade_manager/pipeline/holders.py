"""The table of holders: work of others that keeps a plan from starting, and the upgrade from its next step.

acceptance.py asks before a plan or an attempt starts, engine.py before the components and before the nodes, and
node_upgrade/phase.py before each node. facts/holders.py has the rules, which the webhook shares. The row of other
plans is plan_queue.py: plans wait in an order, and once one has started no other one can.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.phases import PhaseName
from upgrade_manager.blockers.known_wait import (
    HoldingAddonWait,
    HoldingClusterWait,
    HoldingMachineWait,
    HoldingUpgradeWait,
)
from upgrade_manager.facts import holders
from upgrade_manager.facts.machine_plan import is_draining
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound, Transient
from upgrade_manager.kube.pager import list_all_pages
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.selections import (
    BUILT_IN_UPGRADES,
    HARVESTER_ADDONS,
    LOCAL_CLUSTER_STATE,
    LOCAL_MACHINES,
    MACHINE_PLANS,
    UPGRADE_JOBS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from upgrade_manager.blockers.known_wait import HolderWait
    from upgrade_manager.facts.holders import Holder
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.informers import InformerSpec


class Place(Enum):
    """The steps before which the table is asked."""

    START = "start"
    CLUSTER_UPGRADE = "cluster upgrade"
    NODE_UPGRADE = "node upgrade"
    #: Before a node's first Job, and before Rancher may drain the node.
    GATE = "gate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kind of holder."""

    #: The objects to read; permanent ones stay watched, others are listed until one of them holds.
    seen: InformerSpec
    find: Callable[[ReconcileContext, Object], Holder | None]
    asked: frozenset[Place]


def _job(ctx: ReconcileContext, job: Object) -> Holder | None:
    return None if ctx.owner.owns(job) else holders.job(job)


def _addon(ctx: ReconcileContext, addon: Object) -> Holder | None:
    """Return an Addon in operation, unless this upgrade has changed it."""
    found = holders.addon(addon)
    if found is None or any(entry["object"] == found.named for entry in ctx.status["ledger"] or []):
        return None
    return found


_ALL = frozenset(Place)
ROWS = (
    Row(seen=BUILT_IN_UPGRADES, find=lambda _, one: holders.upgrade(one), asked=_ALL),
    # The cluster upgrade waits for them itself (ending/orphaned_jobs.py), and no Job is orphaned after it.
    Row(seen=UPGRADE_JOBS, find=_job, asked=frozenset({Place.START})),
    Row(seen=LOCAL_MACHINES, find=lambda _, one: holders.machine(one), asked=_ALL),
    Row(seen=HARVESTER_ADDONS, find=_addon, asked=_ALL),
    # At the gate the row of Rancher decides (nodes/gate.py): the Cluster is never updated between two nodes.
    Row(seen=LOCAL_CLUSTER_STATE, find=lambda _, one: holders.rancher(one), asked=_ALL - {Place.GATE}),
)


#: By the kind of a holder that appears after the start.
WAITS: Mapping[str, type[HolderWait]] = {
    one.kind.object_kind: one for one in (HoldingUpgradeWait, HoldingMachineWait, HoldingAddonWait, HoldingClusterWait)
}


async def first(ctx: ReconcileContext, place: Place) -> Holder | None:
    """Return the first holder in the order of the table; None if nothing holds the cluster.

    What is listed is watched once it holds, so that its end triggers a reconcile.
    """
    rows = [row for row in ROWS if place in row.asked and not (place is Place.START and _is_mended(ctx, row))]
    for row in rows:
        for one in sorted(await _read(ctx, row.seen, place), key=objects.key):
            found = row.find(ctx, one)
            if found is not None and not (row.seen is LOCAL_CLUSTER_STATE and await _is_frozen(ctx)):
                await ctx.watch(row.seen)
                return found
    return None


def _is_mended(ctx: ReconcileContext, row: Row) -> bool:
    """Return True for what a failed upgrade of the components leaves half-way, which the next attempt mends."""
    is_half_way = PhaseName.CLUSTER_UPGRADE.active in ctx.status.recorded_phases()
    return is_half_way and row.seen in {HARVESTER_ADDONS, LOCAL_CLUSTER_STATE}


async def _is_frozen(ctx: ReconcileContext) -> bool:
    """Return True if Rancher waits in a drain that an earlier plan has begun, which the next plan ends.

    Its strategy may have no hooks any more: it is given back once Rancher has requested the last one.
    """
    return any(map(is_draining, (await ctx.watch(MACHINE_PLANS)).list()))


async def wait(ctx: ReconcileContext, place: Place) -> Waiting | None:
    """Return the wait for the first holder, before a phase; None if nothing holds the cluster."""
    holder = await first(ctx, place)
    if holder is None:
        return None
    kind = WAITS[holder.kind]
    found = kind(
        namespace=holder.namespace,
        name=holder.name,
        since=first_seen(ctx, kind, holder.name),
        detail=f"it {holder.why}",
        remedies=holder.ways_out,
    )
    return Waiting(message=f"Waiting, because {holder}", waits=(found,))


async def _read(ctx: ReconcileContext, spec: InformerSpec, place: Place) -> Iterable[Object]:
    if spec.permanent or place is Place.GATE or spec in ctx.informers.specs:
        try:
            return (await ctx.watch(spec)).list()
        except Transient:
            if await _listed(ctx, spec) is not None:
                raise
            return ()
    return (await _listed(ctx, spec)) or ()


async def _listed(ctx: ReconcileContext, spec: InformerSpec) -> list[Object] | None:
    """Return the objects; None if the cluster does not serve the kind."""
    try:
        return (await list_all_pages(partial(ctx.client.list_page, spec), resource_version="")).items
    except NotFound:
        return None
