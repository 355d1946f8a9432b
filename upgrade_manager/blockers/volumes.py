"""Volumes that lack replicas, for which the pre-drain Job waits; facts/volumes.py has the rule of its gate.

table.py lists the finder; toolkit/vms/longhorn_gate.py is the gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import LONGHORN_SYSTEM, MANAGED_SELECTOR
from upgrade_manager.blockers.deadlines import volumes
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.wait import EvacuationWait
from upgrade_manager.facts.condition_words import condition_words
from upgrade_manager.facts.volumes import (
    claim_of,
    required_tags,
    storage_nodes,
    volumes_at_risk,
    way_to_skip,
    ways_out,
)
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES, NODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object


def _blockers(view: View, wait: EvacuationWait) -> Iterator[Blocker]:
    """Yield the volumes for which the gate of the pre-drain Job waits."""
    nodes = view.objects(Selection(resource=NODES, label_selector=MANAGED_SELECTOR, metadata_only=True))
    engines = view.objects(Selection(resource=LONGHORN_ENGINES, namespace=LONGHORN_SYSTEM))
    volumes = view.objects(Selection(resource=LONGHORN_VOLUMES, namespace=LONGHORN_SYSTEM))
    count = storage_nodes(nodes)
    for volume, problem in volumes_at_risk(volumes, engines, nodes=count):
        yield _blocker(wait, volume, problem, nodes=count)


def _blocker(wait: EvacuationWait, volume: Object, problem: str, *, nodes: int) -> Blocker:
    namespace, name = objects.key(volume)
    tags = required_tags(volume)
    return Blocker(
        reason=BlockerReason.VOLUME_DEGRADED,
        kind="Volume",
        namespace=namespace,
        name=name,
        node=wait.node,
        message=f"Volume {namespace}/{name}: the drain of node {wait.node} waits for it "
        f"({'; '.join([problem, *_about(volume, tags)])})",
        remedies=(*ways_out(volume, nodes=nodes), way_to_skip(volume, wait.node)),
        since=wait.since,
    )


def _about(volume: Object, tags: Mapping[str, str]) -> Iterator[str]:
    """Yield the owner of the volume, and the reason why Longhorn has no place for the missing replica."""
    claim = claim_of(volume)
    if claim:
        yield f"PersistentVolumeClaim {claim}"
    scheduled = objects.condition(volume, "Scheduled")
    if objects.text(scheduled, "status") == "False":
        yield f"Longhorn places no replica: {condition_words(scheduled) or 'Scheduled is False'}"
    yield from (f"{key} {wanted}" for key, wanted in tags.items())


FINDERS = (
    Finder(
        wait=EvacuationWait,
        reasons=(BlockerReason.VOLUME_DEGRADED,),
        overdue=volumes,
        find=_blockers,
    ),
)
