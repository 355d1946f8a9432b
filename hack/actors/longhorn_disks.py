"""Longhorn's choice of disks for replicas: tags of nodes and disks, and what a volume's condition Scheduled says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.kinds import LONGHORN_NODES
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Collection

    from upgrade_manager.kube.objects import Object

#: The reasons of Longhorn's scheduler.
_UNAVAILABLE, _TAGS = "disks are unavailable", "tags not fulfilled"


def longhorn_node(name: str) -> Object:
    """Build the node as Longhorn sees it, with Harvester's default disk."""
    disk = {"diskType": "filesystem", "path": "/var/lib/harvester/defaultdisk", "allowScheduling": True, "tags": []}
    return {
        "apiVersion": LONGHORN_NODES.api_version,
        "kind": LONGHORN_NODES.kind,
        "metadata": {"name": name, "namespace": LONGHORN_SYSTEM},
        "spec": {"name": name, "allowScheduling": True, "tags": [], "disks": {"default-disk": disk}},
        "status": {"conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "Schedulable")]},
    }


def refusal(volume: Object, node: Object | None) -> str:
    """Return why a node of Longhorn takes no replica of the volume; empty if it takes one."""
    spec, wanted = objects.spec(node or {}), objects.spec(volume)
    if not spec.get("allowScheduling") or not _has(spec, wanted.get("nodeSelector")):
        return _UNAVAILABLE
    disks = [disk for disk in (spec.get("disks") or {}).values() if disk.get("allowScheduling")]
    if not disks:
        return _UNAVAILABLE
    return "" if any(_has(disk, wanted.get("diskSelector")) for disk in disks) else _TAGS


def _has(tagged: Object, selector: Collection[str] | None) -> bool:
    return set(selector or ()) <= set(tagged.get("tags") or ())


def conditions(volume: Object, refusals: Collection[str], *, at: str) -> list[Object]:
    """Return the volume's conditions: Scheduled is False while replicas are refused."""
    old = objects.status(volume).get("conditions") or []
    if not refusals:
        return with_condition(old, "Scheduled", "True", at=at, time=TRANSITION)
    message = f"precheck new replica failed: {'; '.join(sorted(set(refusals)))}"
    reason = "ReplicaSchedulingFailure"
    return with_condition(old, "Scheduled", "False", reason=reason, message=message, at=at, time=TRANSITION)
