"""Volumes that lack replicas, for which the pre-drain Job waits; facts/volumes.py has the rule of its gate.

table.py lists the finder; toolkit/vms/longhorn_gate.py is the gate.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import LONGHORN_SYSTEM, MANAGED_SELECTOR
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.deadlines import volumes
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.remedy import steps
from upgrade_manager.blockers.wait import EvacuationWait
from upgrade_manager.facts.condition_words import condition_words
from upgrade_manager.facts.volumes import claim_of, storage_nodes, volumes_at_risk
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES, NODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object

#: The volume's fields of required tags, each with the field of Longhorn's nodes that has the tags.
_SELECTORS = {"diskSelector": "spec.disks.*.tags", "nodeSelector": "spec.tags"}
#: The label that Longhorn sets on replicas.
_VOLUME_LABEL = "longhornvolume"


def _blockers(view: View, wait: EvacuationWait) -> Iterator[Blocker]:
    """Yield the volumes for which the gate of the pre-drain Job waits."""
    nodes = view.objects(Selection(resource=NODES, label_selector=MANAGED_SELECTOR, metadata_only=True))
    engines = view.objects(Selection(resource=LONGHORN_ENGINES, namespace=LONGHORN_SYSTEM))
    volumes = view.objects(Selection(resource=LONGHORN_VOLUMES, namespace=LONGHORN_SYSTEM))
    for volume, problem in volumes_at_risk(volumes, engines, nodes=storage_nodes(nodes)):
        yield _blocker(wait, volume, problem)


def _blocker(wait: EvacuationWait, volume: Object, problem: str) -> Blocker:
    namespace, name = objects.key(volume)
    tags = _tags(volume)
    return Blocker(
        reason=BlockerReason.VOLUME_DEGRADED,
        kind="Volume",
        namespace=namespace,
        name=name,
        node=wait.node,
        message=f"Volume {namespace}/{name}: the drain of node {wait.node} waits for it "
        f"({'; '.join([problem, *_about(volume, tags)])})",
        remedy=_remedy(volume, tags),
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


def _remedy(volume: Object, tags: Mapping[str, str]) -> str:
    """Return the remedy that gives Longhorn a place for the missing replica, which Longhorn then rebuilds by itself."""
    place = f"-n {LONGHORN_SYSTEM}"
    named = f"{place} {objects.name(volume)}"
    nodes = f"kubectl get nodes.longhorn.io {place} -o wide"
    if not tags:
        replicas = f"kubectl get replicas.longhorn.io {place} -l {_VOLUME_LABEL}={objects.name(volume)}"
        return steps(f"Make nodes schedulable, with space on their disks: {nodes}", f"Show its replicas: {replicas}")
    added = " and ".join(f"{wanted} to {_SELECTORS[key]}" for key, wanted in tags.items())
    patch = json.dumps({"spec": dict.fromkeys(tags)}, separators=(",", ":"))
    return steps(
        f"Add {added} on each node that is to have a replica: kubectl edit nodes.longhorn.io {place}",
        f"Or let all fit until the upgrade ends: kubectl patch volumes.longhorn.io {named} --type=merge -p '{patch}'",
    )


def _tags(volume: Object) -> dict[str, str]:
    """Return the tags that disks or nodes with a replica must have, by the field that requires them."""
    found = {key: [one for one in objects.items(volume, "spec", key) if isinstance(one, str)] for key in _SELECTORS}
    return {key: name_list(tags) for key, tags in found.items() if tags}


FINDERS = (
    Finder(
        wait=EvacuationWait,
        reasons=(BlockerReason.VOLUME_DEGRADED,),
        overdue=volumes,
        find=_blockers,
    ),
)
