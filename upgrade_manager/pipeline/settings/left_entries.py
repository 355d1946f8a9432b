"""The entries of the ledger that deleted plans have left in an annotation of Rancher's cluster for the next plan.

../ending/passing_on.py writes the annotation. The next plan records KubeVirt's update methods in Initialize
(../phases/initialize.py), the other entries at the beginning of its node upgrade (../node_upgrade/phase.py), on a
single node at the end of it (unfinished_upgrade.py), and removes from the annotation what it has recorded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_LEDGER, FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.ledger import LEFT, LedgerKind, of_kind, recorded_entries
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.pipeline import ledger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.api.ledger import Entry
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext


def read(cluster: Object) -> list[Entry]:
    """Return the entries that a deleted plan has left for the next one."""
    try:
        raw = json.loads(objects.annotations_of(cluster).get(ANNOTATION_LEDGER, "[]"))
    except (ValueError, RecursionError):
        return []
    found = of_kind(recorded_entries({"ledger": raw}), *LEFT)
    return [entry for entry in found if parse_time(entry.get("since")) is not None]


def value(entries: Sequence[Entry]) -> str:
    """Return the annotation's value."""
    return json.dumps(entries, separators=(",", ":"))


async def take_methods(ctx: ReconcileContext, cluster: Object) -> None:
    """Record KubeVirt's update methods that a deleted plan has not given back; this plan does so at its end.

    They are taken before the checks: the Job that may write them has ended, and a plan that fails gives them back, too.
    """
    left = read(cluster)
    methods = of_kind(left, LedgerKind.UPDATE_METHODS)
    if not methods:
        return
    ledger.put(ctx, methods)
    # No crash loses them, because they are recorded here before they are removed there.
    await ctx.persist()
    others = [entry for entry in left if entry not in methods]
    annotations = {ANNOTATION_LEDGER: value(others) if others else None}
    patch = MergePatch({"metadata": {"annotations": annotations}}).at(objects.resource_version(cluster))
    name, namespace = PROVISIONING_CLUSTER, FLEET_LOCAL
    event = "ledger of a deleted plan taken over"
    await ctx.patch(PROVISIONING_CLUSTERS, name, patch, namespace=namespace, metadata_only=True, event=event)
