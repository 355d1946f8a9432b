"""Volumes that lack replicas while a node with one of them is to be drained: the pre-drain Job waits for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.migrations import evacuation_overdue
from upgrade_manager.blockers.remedy import steps
from upgrade_manager.blockers.wait import WaitKind
from upgrade_manager.facts.condition_words import condition_words
from upgrade_manager.facts.label_selectors import one_of
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import LONGHORN_REPLICAS, LONGHORN_VOLUMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from upgrade_manager.blockers.view import View
    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.objects import Object

#: Fields of a volume: the tags of disks and nodes that may have its replicas; and where Longhorn's nodes have them.
_SELECTORS = {"diskSelector": "spec.disks.*.tags", "nodeSelector": "spec.tags"}
_UNHEALTHY = frozenset({"degraded", "faulted"})
# Labels that Longhorn sets, on replicas and on volumes.
_NODE_LABEL = "longhornnode"
_VOLUME_LABEL = "longhornvolume"


def _overdue(wait: Wait) -> timedelta | None:
    return evacuation_overdue(wait) if wait.is_running else None


def _blockers(view: View, wait: Wait) -> Iterator[Blocker]:
    """Yield the unhealthy volumes with a replica on the node; no others are read, of thousands."""
    on_node = f"{_NODE_LABEL}={wait.node}"
    replicas = view.objects(Selection(resource=LONGHORN_REPLICAS, namespace=LONGHORN_SYSTEM, label_selector=on_node))
    selector = one_of(_VOLUME_LABEL, (objects.text(replica, "spec", "volumeName") for replica in replicas))
    if selector:
        volumes = Selection(resource=LONGHORN_VOLUMES, namespace=LONGHORN_SYSTEM, label_selector=selector)
        yield from (_blocker(wait, one) for one in view.objects(volumes) if _robustness(one) in _UNHEALTHY)


def _robustness(volume: Object) -> str:
    return objects.text(volume, "status", "robustness")


def _blocker(wait: Wait, volume: Object) -> Blocker:
    namespace, name = objects.key(volume)
    claim = objects.mapping(volume, "status", "kubernetesStatus")
    claimed = f"{objects.text(claim, 'namespace')}/{objects.text(claim, 'pvcName')}"
    about = [f"PersistentVolumeClaim {claimed}"] if objects.text(claim, "pvcName") else []
    scheduled = objects.condition(volume, "Scheduled")
    if objects.text(scheduled, "status") == "False":
        about.append(f"Longhorn places no replica: {condition_words(scheduled) or 'Scheduled is False'}")
    tags = _tags(volume)
    detail = "; ".join([*about, *(f"{key} {wanted}" for key, wanted in tags.items())])
    return Blocker(
        reason=BlockerReason.VOLUME_DEGRADED,
        kind="Volume",
        namespace=namespace,
        name=name,
        node=wait.node,
        message=f"Volume {namespace}/{name}: it is {_robustness(volume)}, with a replica on node {wait.node}"
        + (f" ({detail})" if detail else ""),
        remedy=_remedy(volume, tags),
        since=wait.since,
    )


def _remedy(volume: Object, tags: Mapping[str, str]) -> str:
    """Return how Longhorn gets a place for the missing replica; it rebuilds the replica by itself then."""
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
        kind=WaitKind.EVACUATION,
        reasons=(BlockerReason.VOLUME_DEGRADED,),
        overdue=_overdue,
        find=_blockers,
    ),
)
