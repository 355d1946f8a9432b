"""The tiers in which Rancher's planner upgrades machines (fullReconcile in rancher v2.14.0, pkg/capr/planner)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Machines that share a concurrency limit, in order."""

    #: Rancher's name in messages.
    name: str
    members: tuple[Object, ...]
    #: The drain annotations' value.
    drain: str
    concurrency: int


def tiers(cluster: Object, machines: list[Object], secrets: dict[str, Object]) -> list[Tier]:
    """Return init node, other etcd nodes, other control-plane nodes, workers; each sorted by Machine name."""
    local = sorted((one for one in machines if objects.namespace(one) == FLEET_LOCAL), key=objects.name)
    strategy = ((objects.spec(cluster).get("rkeConfig") or {}).get("upgradeStrategy")) or {}
    single = len(local) == 1
    control = plans.drain_text(strategy.get("controlPlaneDrainOptions"), single=single)
    worker = plans.drain_text(strategy.get("workerDrainOptions"), single=single)
    groups: tuple[list[Object], ...] = ([], [], [], [])
    for machine in local:
        groups[_tier_of(machine, secrets.get(objects.name(machine)) or {})].append(machine)
    limits = (
        1,
        1,
        plans.concurrency(strategy.get("controlPlaneConcurrency"), len(groups[2])),
        plans.concurrency(strategy.get("workerConcurrency"), len(groups[3])),
    )
    names = ("bootstrap", "etcd", "control plane", "worker")
    drains = (control, control, control, worker)
    return [
        Tier(name=name, members=tuple(members), drain=drain, concurrency=limit)
        for name, members, drain, limit in zip(names, groups, drains, limits, strict=True)
        if members
    ]


def _tier_of(machine: Object, secret: Object) -> int:
    labels = objects.labels(machine)
    if labels.get(plans.ETCD_ROLE) == "true":
        return 0 if objects.labels(secret).get(plans.INIT_NODE) == "true" else 1
    return 2 if labels.get(plans.CONTROL_PLANE_ROLE) == "true" else 3
