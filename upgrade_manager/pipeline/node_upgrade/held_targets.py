"""VMs whose only other nodes are held: an earlier upgrade keeps these nodes cordoned. phase.py passes them to the gate.

facts/live_migration.py has the rule, with which the webhook (webhook/checks/vms.py) names the same VMs before.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.facts.live_migration import waiting_vms
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_INSTANCES
from upgrade_manager.nodes.gate import reads_others
from upgrade_manager.pipeline.plan_objects import skip_missing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from upgrade_manager.nodes.model import Decided
    from upgrade_manager.nodes.node_view import Observed
    from upgrade_manager.pipeline.context import ReconcileContext


async def find_waiting(
    ctx: ReconcileContext, observed: Observed, decided: Sequence[Decided], *, held: Collection[str]
) -> Mapping[str, Sequence[str]]:
    """Return the VMs that wait for these held nodes, by the node on which they run, if a decision depends on them.

    They are listed once for all nodes, and again after a while, or after a cordon: no VM comes to a cordoned node.
    """
    if not reads_others(decided):
        return {}
    nodes = observed.nodes.list()
    cordoned = sorted(objects.name(one) for one in nodes if objects.is_true(one, "spec", "unschedulable"))
    key = ",".join([*cordoned, "", *sorted(held)])
    found: dict[str, list[str]] = json.loads(
        await ctx.informers.waiting_vms.get(key, partial(_listed, ctx, observed, held))
    )
    return found


async def _listed(ctx: ReconcileContext, observed: Observed, held: Collection[str]) -> str:
    found = await skip_missing(ctx.client, "", ctx.client.list(VIRTUAL_MACHINE_INSTANCES))
    result: defaultdict[str, list[str]] = defaultdict(list)
    for one in waiting_vms(observed.nodes.list(), found.items if found is not None else (), held):
        result[objects.text(one, "status", "nodeName")].append(objects.qualified_name(one))
    return json.dumps(result)
