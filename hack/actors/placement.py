"""Nodes for virtual machines, by Harvester's rules: as for Pods, but not a witness or a draining node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.selectors import NO_EXECUTE, NO_SCHEDULE, fits_node
from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from upgrade_manager.kube.objects import Object

FINAL = frozenset({"Succeeded", "Failed"})


def is_final(instance: Object) -> bool:
    """Report whether the instance has ended for good."""
    return objects.status(instance).get("phase") in FINAL


def place(instance: Object, nodes: Iterable[Object], load: Callable[[str], int], *, other_than: str = "") -> str:
    """Return the least loaded node that accepts the instance, or an empty string."""
    open_ = [
        node for node in nodes if objects.name(node) != other_than and _accepts(node) and fits_node(instance, node)
    ]
    ranked = sorted((load(objects.name(node)), objects.name(node)) for node in open_)
    return ranked[0][1] if ranked else ""


def _accepts(node: Object) -> bool:
    taints = objects.spec(node).get("taints") or ()
    tainted = any(taint.get("effect") in {NO_SCHEDULE, NO_EXECUTE} for taint in taints)
    cordoned = bool(objects.spec(node).get("unschedulable"))
    ready = objects.is_condition_true(node, "Ready")
    return ready and not cordoned and not tainted and WITNESS_LABEL not in objects.labels(node)
