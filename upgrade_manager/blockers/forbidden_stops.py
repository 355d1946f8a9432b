"""Finds users' PodDisruptionBudgets that keep a Job from stopping VMs; facts/forbidden_stops.py has the Job's rule.

table.py lists the finder; toolkit/vms/vm_stop.py is the Job that waits. disruption_budgets.py has the budgets that keep
Rancher from evicting Pods.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.deadlines import at_once
from upgrade_manager.blockers.disruption_budgets import budgets_beside, why_kept
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.wait import ForbiddenStopWait
from upgrade_manager.facts.evictions import ways_out_of_stop
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.forbidden_stops import LAUNCHERS, Permissions
from upgrade_manager.facts.vm_obstacles import NODE_LABEL, way_to_stop
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import PODS, VIRTUAL_MACHINE_INSTANCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object

#: VMs whose stop is offered; more would crowd out the other remedies.
_MAX_STOPS = 3


def _blockers(view: View, wait: ForbiddenStopWait) -> Iterator[Blocker]:
    """Yield the budgets without a disruption left, each with the VMs that the Job has to stop."""
    on_node = view.objects(Selection(resource=VIRTUAL_MACHINE_INSTANCES, label_selector=f"{NODE_LABEL}={wait.node}"))
    running = [one for one in on_node if not (is_final(one) or objects.is_deleting(one))]
    instances = [one for one in running if objects.qualified_name(one) in wait.vms]
    if not instances:
        return
    place = f"spec.nodeName={wait.node}"
    launchers = view.objects(Selection(resource=PODS, label_selector=LAUNCHERS, field_selector=place))
    budgets = budgets_beside(view, instances)
    permissions = Permissions(budgets, launchers)
    found: defaultdict[str, list[Object]] = defaultdict(list)
    for one in instances:
        for budget in permissions.forbidding(one):
            found[objects.uid(budget)].append(one)
    yield from (_blocker(wait, one, found[objects.uid(one)]) for one in budgets if objects.uid(one) in found)


def _blocker(wait: ForbiddenStopWait, budget: Object, instances: Sequence[Object]) -> Blocker:
    why, is_stale = why_kept(budget, instances)
    names = name_list(sorted(map(objects.qualified_name, instances)))
    return Blocker(
        reason=BlockerReason.EVICTION_FORBIDDEN,
        kind="PodDisruptionBudget",
        namespace=objects.namespace(budget),
        name=objects.name(budget),
        node=wait.node,
        message=f"PodDisruptionBudget {objects.qualified_name(budget)}: it {why}, and node {wait.node} waits until the "
        f"upgrade may stop {'VM' if len(instances) == 1 else 'VMs'} {names}",
        remedies=(
            *ways_out_of_stop(budget, is_stale=is_stale),
            *(way for one in instances[:_MAX_STOPS] for way in way_to_stop(one, after="Or, whatever the budget says")),
        ),
        since=wait.since,
    )


FINDERS = (
    Finder(
        wait=ForbiddenStopWait,
        reasons=(BlockerReason.EVICTION_FORBIDDEN,),
        overdue=at_once,
        find=_blockers,
    ),
)
