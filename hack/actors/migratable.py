"""Which running virtual machines cannot migrate, by Harvester's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.taints import fits_node
from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object

FINAL = frozenset({"Succeeded", "Failed"})


def is_final(instance: Object) -> bool:
    """Report whether the instance has ended for good."""
    return objects.status(instance).get("phase") in FINAL


def can_move(instance: Object, nodes: Iterable[Object]) -> bool:
    """Report whether the instance can run on another node; witness nodes do not count."""
    others = [node for node in nodes if WITNESS_LABEL not in objects.labels(node)]
    if len(others) < 2:  # noqa: PLR2004  # one node has no other
        return False
    spec = objects.spec(instance)
    devices = (spec.get("domain") or {}).get("devices") or {}
    if spec.get("nodeSelector") is not None or devices.get("hostDevices") is not None:
        return False
    here = objects.status(instance).get("nodeName")
    return any(
        objects.name(node) != here and not objects.spec(node).get("unschedulable") and fits_node(instance, node)
        for node in others
    )
