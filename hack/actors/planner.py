"""Rancher's planner: gives each machine the cluster's plan, one tier and one machine after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.conditions import TRANSITION, with_condition
from hack.actors.machine_plan import DRAIN_DONE, DRAIN_OPTIONS, UNCORDON
from upgrade_manager.api.keys import FLEET_LOCAL, MACHINE_PLAN_SECRET_TYPE, PROVISIONING_CLUSTER, RKE_MACHINE_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch, merge_diff
from upgrade_manager.kube.resources import MACHINES, NODES, PROVISIONING_CLUSTERS, SECRETS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import ControllerLoop, RequeueAfter
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

SECRET_SELECTOR = f"type={MACHINE_PLAN_SECRET_TYPE}"
_KEY = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Machines that share a concurrency limit, in order."""

    members: tuple[Object, ...]
    #: The drain annotations' value.
    drain: str
    concurrency: int


class Planner:
    """Reconciles the provisioning cluster fleet-local/local."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client("rancher")
        caches = context.caches
        self._clusters = caches.of(PROVISIONING_CLUSTERS)
        self._machines = caches.of(MACHINES)
        self._nodes = caches.of(NODES)
        self._secrets = caches.of(SECRETS, field_selector=SECRET_SELECTOR)
        self._loop: ControllerLoop[str] = context.loop("planner", self._reconcile)
        #: Finished machines by the versions they were decided on; they are skipped.
        self._settled: dict[str, tuple[str, str, int]] = {}
        for cache in (self._clusters, self._machines, self._secrets):
            cache.subscribe(self._changed)
        self._nodes.subscribe(self._node_changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.caches.synced()
        self._loop.add(_KEY)
        await self._loop.run()

    def _changed(self, _: Change) -> None:
        self._loop.add(_KEY, after=self._context.seconds(self._context.scenario.durations.planner))

    def _node_changed(self, change: Change) -> None:
        if _kubelet(change.old or {}) != _kubelet(change.obj):
            self._changed(change)

    async def _reconcile(self, _: str) -> RequeueAfter:
        cluster = self._clusters.store.get(PROVISIONING_CLUSTER, FLEET_LOCAL)
        if cluster is None or objects.is_deleting(cluster) or not self._is_known(cluster):
            return None
        secrets = self._secrets_by_machine()
        finished = True
        for tier in tiers(cluster, self._machines.store.list(), secrets):
            finished = await self._serve(tier, cluster, secrets)
            if not finished:
                break
        await self._report(cluster, finished=finished)
        return None

    def _is_known(self, cluster: Object) -> bool:
        """Report whether Rancher has data for the version; others are not planned."""
        scenario = self._context.scenario
        known = {scenario.software.kubernetes, scenario.release.kubernetes}
        return objects.spec(cluster).get("kubernetesVersion") in known

    def _secrets_by_machine(self) -> dict[str, Object]:
        listed = [one for one in self._secrets.store.list() if objects.namespace(one) == FLEET_LOCAL]
        return {objects.labels(one).get(RKE_MACHINE_NAME) or "": one for one in listed}

    async def _serve(self, tier: Tier, cluster: Object, secrets: dict[str, Object]) -> bool:
        """Reconcile the tier's machines and report whether all of them are finished."""
        open_ = [(one, secrets[objects.name(one)]) for one in tier.members if objects.name(one) in secrets]
        open_ = [(one, secret) for one, secret in open_ if not self._is_settled(one, secret, cluster)]
        unavailable = sum(1 for _, secret in open_ if plans.is_busy(secret))
        finished = True
        for machine, secret in open_:
            wanted = plans.plan_of(cluster, machine)
            if plans.is_busy(secret):
                finished = False
                await self._drive(tier, machine, secret, wanted)
            elif plans.drain_hash(wanted) != plans.drain_hash(plans.data(secret, "appliedPlan")):
                finished = False
                if not tier.concurrency or unavailable < tier.concurrency:
                    unavailable += 1
                    await self._begin(tier, machine, secret, wanted)
            elif not self._has_kubelet(machine, cluster):
                finished = False
                await self._report_waiting(machine, "waiting for kubelet to update")
            else:
                await self._report_waiting(machine, "")
                # Only after that write succeeded.
                self._settled[objects.name(machine)] = _versions(secret, cluster)
        return finished

    def _is_settled(self, machine: Object, secret: Object, cluster: Object) -> bool:
        return objects.is_deleting(machine) or self._settled.get(objects.name(machine)) == _versions(secret, cluster)

    async def _begin(self, tier: Tier, machine: Object, secret: Object, wanted: bytes) -> None:
        applied = plans.data(secret, "appliedPlan")
        drains = plans.needs_drain(tier.drain) and plans.drain_hash(applied) and _node_name(machine)
        if not drains:
            await self._write_plan(secret, wanted)
            return
        await self._annotate(secret, {DRAIN_OPTIONS: tier.drain})
        await self._report_waiting(machine, "draining node")

    async def _drive(self, tier: Tier, machine: Object, secret: Object, wanted: bytes) -> None:
        annotations = objects.annotations_of(secret)
        options = annotations.get(DRAIN_OPTIONS)
        if not plans.is_in_sync(secret):
            await self._report_waiting(machine, "waiting for plan to be applied")
        elif plans.drain_hash(plans.data(secret, "plan")) != plans.drain_hash(wanted):
            await self._replan(tier, machine, secret, wanted)
        elif options is None:
            return
        elif annotations.get(UNCORDON) == options:
            await self._report_waiting(machine, "waiting for uncordon to finish")
        else:
            await self._annotate(secret, {UNCORDON: options})

    async def _replan(self, tier: Tier, machine: Object, secret: Object, wanted: bytes) -> None:
        """Give a new plan to a machine in any stage of a drain; a drained machine gets it at once."""
        annotations = objects.annotations_of(secret)
        if not plans.needs_drain(tier.drain):
            await self._write_plan(secret, wanted)
        elif annotations.get(DRAIN_OPTIONS) != tier.drain:
            await self._annotate(secret, {DRAIN_OPTIONS: tier.drain})
        elif annotations.get(DRAIN_DONE) == tier.drain:
            await self._report_waiting(machine, "drain completed")
            await self._write_plan(secret, wanted)
        else:
            await self._report_waiting(machine, "draining node")

    def _has_kubelet(self, machine: Object, cluster: Object) -> bool:
        node = self._nodes.store.get(_node_name(machine))
        wanted = objects.spec(cluster).get("kubernetesVersion") or ""
        return node is None or _release(_kubelet(node)) == _release(wanted)

    async def _annotate(self, secret: Object, annotations: dict[str, str]) -> None:
        await self._write(secret, {"metadata": {"annotations": annotations}})

    async def _write_plan(self, secret: Object, wanted: bytes) -> None:
        await self._write(secret, {"data": {"plan": plans.encoded(wanted)}})

    async def _write(self, secret: Object, body: Object) -> None:
        patch = MergePatch(body).at(objects.resource_version(secret))
        written = await self._client.patch(SECRETS, objects.name(secret), patch, namespace=FLEET_LOCAL)
        await self._secrets.seen(written)

    async def _report_waiting(self, machine: Object, waits_for: str) -> None:
        """Set the Machine's Reconciled condition to what the planner waits for."""
        old = objects.status(machine).get("conditions") or []
        state, reason = ("Unknown", "Waiting") if waits_for else ("True", "")
        at = self._context.timestamp()
        new = with_condition(old, "Reconciled", state, reason=reason, message=waits_for, at=at, time=TRANSITION)
        if new == old:
            return
        patch = MergePatch({"status": {"conditions": new}}).at(objects.resource_version(machine))
        name, namespace = objects.name(machine), objects.namespace(machine)
        written = await self._client.patch(MACHINES, name, patch, namespace=namespace, subresource="status")
        await self._machines.seen(written)

    async def _report(self, cluster: Object, *, finished: bool) -> None:
        old, at = objects.status(cluster), self._context.timestamp()
        state = "True" if finished else "Unknown"
        conditions = with_condition(old.get("conditions") or [], "Updated", state, at=at)
        generation = objects.metadata(cluster).get("generation") or 1
        new = {**old, "conditions": conditions, "observedGeneration": generation}
        difference = merge_diff(old, new)
        if difference:
            patch = MergePatch({"status": difference})
            name, namespace = objects.name(cluster), objects.namespace(cluster)
            await self._client.patch(PROVISIONING_CLUSTERS, name, patch, namespace=namespace, subresource="status")


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
    drains = (control, control, control, worker)
    return [
        Tier(members=tuple(members), drain=drain, concurrency=limit)
        for members, drain, limit in zip(groups, drains, limits, strict=True)
        if members
    ]


def _tier_of(machine: Object, secret: Object) -> int:
    labels = objects.labels(machine)
    if labels.get(plans.ETCD_ROLE) == "true":
        return 0 if objects.labels(secret).get(plans.INIT_NODE) == "true" else 1
    return 2 if labels.get(plans.CONTROL_PLANE_ROLE) == "true" else 3


def _versions(secret: Object, cluster: Object) -> tuple[str, str, int]:
    spec = objects.spec(cluster)
    generation = (spec.get("rkeConfig") or {}).get("provisionGeneration") or 0
    return objects.resource_version(secret), spec.get("kubernetesVersion") or "", generation


def _node_name(machine: Object) -> str:
    return (objects.status(machine).get("nodeRef") or {}).get("name") or ""


def _kubelet(node: Object) -> str:
    return (objects.status(node).get("nodeInfo") or {}).get("kubeletVersion") or ""


def _release(version: str) -> str:
    """Return major, minor and patch, which are the compared parts."""
    return version.split("+", maxsplit=1)[0].split("-", maxsplit=1)[0]
