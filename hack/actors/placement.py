"""Placement of virtual machines: as for Pods, but not on a witness or a draining node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.taints import NO_EXECUTE, NO_SCHEDULE, fits_node
from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from upgrade_manager.kube.objects import Object


def place(instance: Object, nodes: Iterable[Object], load: Callable[[str], int], *, other_than: str = "") -> str:
    """Return the least loaded node that accepts the instance, or an empty string."""
    open_ = [node for node in nodes if objects.name(node) != other_than and _takes(node) and fits_node(instance, node)]
    ranked = sorted((load(objects.name(node)), objects.name(node)) for node in open_)
    return ranked[0][1] if ranked else ""


def _takes(node: Object) -> bool:
    taints = objects.spec(node).get("taints") or ()
    tainted = any(taint.get("effect") in {NO_SCHEDULE, NO_EXECUTE} for taint in taints)
    cordoned = bool(objects.spec(node).get("unschedulable"))
    ready = objects.is_condition_true(node, "Ready")
    return ready and not cordoned and not tainted and WITNESS_LABEL not in objects.labels(node)
