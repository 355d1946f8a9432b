"""Finds KubeVirt's leftover PodDisruptionBudgets, for which the pre-drain Job waits; facts/evictions.py has its rule.

table.py lists the finder; toolkit/vms/evacuation.py is the step of the Job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.blockers.deadlines import leftover_budgets
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.wait import EvacuationWait
from upgrade_manager.facts.evictions import LEFTOVER, delete_leftover, leftovers
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import POD_DISRUPTION_BUDGETS, VIRTUAL_MACHINE_INSTANCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.blockers.object_view import View


def _blockers(view: View, wait: EvacuationWait) -> Iterator[Blocker]:
    """Yield the budgets whose VM or migration has ended."""
    budgets = view.objects(Selection(resource=POD_DISRUPTION_BUDGETS, metadata_only=True))
    instances = view.objects(Selection(resource=VIRTUAL_MACHINE_INSTANCES, metadata_only=True))
    for budget in leftovers(budgets, set(map(objects.uid, instances))):
        yield Blocker(
            reason=BlockerReason.DRAIN_FAILING,
            kind="PodDisruptionBudget",
            namespace=objects.namespace(budget),
            name=objects.name(budget),
            node=wait.node,
            message=f"PodDisruptionBudget {objects.qualified_name(budget)}: it is {LEFTOVER}, and the drain of node "
            f"{wait.node} waits for its removal",
            remedies=(delete_leftover(budget),),
            since=wait.at_budgets or wait.since,
        )


FINDERS = (
    Finder(
        wait=EvacuationWait,
        reasons=(BlockerReason.DRAIN_FAILING,),
        overdue=leftover_budgets,
        find=_blockers,
    ),
)
