"""Finds the reason why Rancher does not drain the next node, does not finish a node, or does not serve a Job.

table.py lists the finders; pipeline/settings/rancher.py makes the patch after which Rancher drains nodes, and
pipeline/phases/cluster_upgrade.py names the Job that needs Rancher.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import CATTLE_SYSTEM, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.blockers.deadlines import PLANNER, lost_hook, needed_controller, planner, rancher_drain
from upgrade_manager.blockers.deployments import has_just_changed, outage
from upgrade_manager.blockers.drains import drain_blockers
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.known_wait import LostHookWait
from upgrade_manager.blockers.object_view import Unreadable
from upgrade_manager.blockers.wait import DrainWait, JobWait, RancherWait
from upgrade_manager.facts.condition_words import unmet_conditions
from upgrade_manager.facts.deployments import hangs
from upgrade_manager.facts.node_obstacles import AWAITS_DRAIN
from upgrade_manager.facts.rancher_cluster import LOGS, RANCHER, joined
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import MACHINES, PROVISIONING_CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.deployments import Outage
    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.blockers.wait import Wait


def _planner_blockers(view: View, wait: RancherWait) -> Iterator[Blocker]:
    """Yield Rancher's Deployment if it does not run, else the Cluster with Rancher's conditions."""
    waits_for = objects.excerpt(wait.detail) or "Rancher does not continue the upgrade"
    yield from _silent(view, wait, waits_for)


def _drain_blockers(view: View, wait: DrainWait) -> Iterator[Blocker]:
    """Yield Rancher's Deployment or the node's Secret, unless the other finder knows why the drain does not end."""
    try:
        is_known = not wait.is_drained and any(drain_blockers(view, wait))
    except Unreadable:
        is_known = True  # the other finder reports the unreadable objects
    if not is_known:
        yield from _silent(view, wait, AWAITS_DRAIN.format(f"node {wait.node}"))


def _lost_hooks(view: View, wait: LostHookWait) -> Iterator[Blocker]:
    """Yield Rancher's Deployment if it does not run: the remedy for lost hooks lets Rancher drain all nodes again."""
    if outage(view, CATTLE_SYSTEM, RANCHER):
        yield from _silent(view, wait, wait.detail)
        return
    yield Blocker(
        reason=BlockerReason.HOOK_LOST,
        kind=wait.kind.object_kind,
        namespace=wait.namespace,
        name=wait.name,
        message=f"Cluster {wait.namespace}/{wait.name}: {wait.detail}",
        remedies=wait.remedies,
        since=wait.since,
    )


def _silent(view: View, wait: Wait, waits_for: str) -> Iterator[Blocker]:
    blocker = partial(Blocker, reason=BlockerReason.RANCHER_SILENT, node=wait.node, since=wait.progressed)
    stopped = outage(view, CATTLE_SYSTEM, RANCHER)
    if stopped:
        yield _stopped(wait, RANCHER, stopped, waits_for)
        return
    if has_just_changed(view, CATTLE_SYSTEM, RANCHER, within=PLANNER):
        return
    kind = wait.kind.object_kind
    overdue = f"continued with node {wait.node}" if wait.node else "started the next node"
    counted = f" ({wait.counted})" if isinstance(wait, RancherWait) and wait.counted else ""
    reported = _reported(view, wait.node)
    usual = f"{PLANNER.total_seconds() / 60:.0f} min"
    says = f"; it reports {reported}" if reported else " and reports no reason"
    yield blocker(
        kind=kind,
        namespace=wait.namespace,
        name=wait.name,
        message=f"{kind} {wait.namespace}/{wait.name}: Rancher has not {overdue} for over {usual}{says}{counted}",
        remedies=hangs(LOGS, CATTLE_SYSTEM, RANCHER, after="10 minutes"),
    )


def _needed(view: View, wait: JobWait) -> Iterator[Blocker]:
    """Yield the Deployments that the Job needs, and that have not run for as long as Rancher may take to act."""
    for name in wait.controllers:
        stopped = outage(view, CATTLE_SYSTEM, name)
        if stopped and not has_just_changed(view, CATTLE_SYSTEM, name, within=PLANNER):
            yield _stopped(wait, name, stopped, f"Job {wait.namespace}/{wait.name} needs it")


def _stopped(wait: Wait, name: str, stopped: Outage, waits_for: str) -> Blocker:
    return Blocker(
        reason=BlockerReason.RANCHER_SILENT,
        kind="Deployment",
        namespace=CATTLE_SYSTEM,
        name=name,
        node=wait.node,
        message=f"{stopped.problem}; {waits_for}",
        remedies=stopped.remedies,
        since=wait.progressed,
    )


def _reported(view: View, node: str) -> str:
    """Return the unmet conditions of the Cluster and of the node's Machine; without a node, of all Machines."""
    selector = f"metadata.name={PROVISIONING_CLUSTER}"
    clusters = view.objects(Selection(resource=PROVISIONING_CLUSTERS, namespace=FLEET_LOCAL, field_selector=selector))
    machines = view.objects(Selection(resource=MACHINES, namespace=FLEET_LOCAL))
    concerned = [one for one in machines if not node or objects.text(one, "status", "nodeRef", "name") == node]
    return joined(
        (unmet.partition(": ")[2], f"{kind} {objects.name(obj)}: {unmet}")
        for kind, some in (("Cluster", clusters), ("Machine", sorted(concerned, key=objects.name)))
        for obj in some
        for unmet in unmet_conditions(obj)
    )


FINDERS = (
    Finder(
        wait=LostHookWait,
        reasons=(BlockerReason.HOOK_LOST, BlockerReason.RANCHER_SILENT),
        overdue=lost_hook,
        find=_lost_hooks,
    ),
    Finder(
        wait=RancherWait,
        reasons=(BlockerReason.RANCHER_SILENT,),
        overdue=planner,
        find=_planner_blockers,
    ),
    Finder(
        wait=DrainWait,
        reasons=(BlockerReason.RANCHER_SILENT,),
        overdue=rancher_drain,
        find=_drain_blockers,
    ),
    Finder(
        wait=JobWait,
        reasons=(BlockerReason.RANCHER_SILENT,),
        overdue=needed_controller,
        find=_needed,
    ),
)
