"""Rancher's planner: gives each machine the cluster's plan, one tier and one machine after another.

The rules are those of `reconcile` in rancher/rancher v2.14.0, pkg/capr/planner/planner.go, and of drain.go beside it.
control_plane.py delivers the Cluster and writes its conditions; drainer.py is the drain controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.control_plane import ControlPlane
from hack.actors.machine_plan import (
    DRAIN_DONE,
    DRAIN_ERROR,
    DRAIN_OPTIONS,
    PROBES_PASSED,
    SECRET_SELECTOR,
    UNCORDON,
)
from hack.actors.machine_state import WAITING_FOR_PLAN, state_of
from hack.actors.planner_report import PlannerReport
from hack.actors.tiers import tiers
from upgrade_manager.api.keys import FLEET_LOCAL, RKE_MACHINE_NAME
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MACHINES, SECRETS

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import ControllerLoop, RequeueAfter
    from hack.actors.machine_state import MachineState
    from hack.actors.tiers import Tier
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Change

_KEY = "local"


class Planner:
    """Reconciles the machine-plan Secrets of the cluster fleet-local/local."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client("rancher")
        caches = context.caches
        self._machines = caches.of(MACHINES)
        self._secrets = caches.of(SECRETS, field_selector=SECRET_SELECTOR)
        self._loop: ControllerLoop[str] = context.loop("planner", self._reconcile)
        self._control_plane = ControlPlane(context, self._client, changed=lambda: self._loop.add(_KEY))
        #: Finished machines by Secret and Cluster as they were decided on; they are skipped.
        self._settled: dict[str, tuple[str, int]] = {}
        for cache in (self._machines, self._secrets):
            cache.subscribe(self._changed)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._context.caches.synced()
        self._loop.add(_KEY)
        await self._control_plane.run(self._loop)

    def _changed(self, _: Change) -> None:
        self._loop.add(_KEY, after=self._context.seconds(self._context.scenario.durations.planner))

    async def _reconcile(self, _: str) -> RequeueAfter:
        cluster = self._control_plane.cluster
        if cluster is None:
            return None
        listed = [one for one in self._secrets.store.list() if objects.namespace(one) == FLEET_LOCAL]
        secrets = {objects.labels(one).get(RKE_MACHINE_NAME) or "": one for one in listed}
        waits_for = ""
        for tier in tiers(cluster, self._machines.store.list(), secrets):
            waits_for = await self._serve(tier, cluster, secrets)
            if waits_for:
                break
        self._control_plane.report(waits_for)
        return None

    async def _serve(self, tier: Tier, cluster: Object, secrets: dict[str, Object]) -> str:
        """Reconcile the tier's machines and return what the planner waits for; later tiers wait, too."""
        report = PlannerReport(self._context, self._client, tier.name)
        open_ = []
        for machine in tier.members:
            secret = secrets.get(objects.name(machine))
            if secret is None or objects.is_deleting(machine):
                continue
            if self._settled.get(objects.name(machine)) == _versions(secret, cluster):
                report.ready.append(machine)
            else:
                open_.append((machine, state_of(secret, self._control_plane.plans.of(machine))))
        unavailable = sum(1 for _, state in open_ if state.is_unavailable)
        for machine, state in open_:
            may_change = state.may_change or not tier.concurrency or unavailable < tier.concurrency
            if state.has_change and not state.is_minor and may_change and not state.is_unavailable:
                unavailable += 1
            await self._plan(tier, machine, state, report, may_change=may_change)
        waits_for = await report.write()
        # Only after those writes succeeded.
        ready = set(map(objects.name, report.ready))
        finished = {objects.name(one): _versions(state.secret, cluster) for one, state in open_}
        self._settled |= {name: versions for name, versions in finished.items() if name in ready}
        return waits_for

    async def _plan(
        self, tier: Tier, machine: Object, state: MachineState, report: PlannerReport, *, may_change: bool
    ) -> None:
        """Do the next step for one machine."""
        report.begin(machine, state.status_message)
        if state.is_minor:
            report.out_of_sync.append(machine)
            await self._write_plan(state)
        elif state.has_change:
            report.out_of_sync.append(machine)
            if may_change:
                await self._change(tier, machine, state, report)
        elif state.status_message:
            report.out_of_sync.append(machine)
        elif await self._is_uncordoned(machine, state, report):
            if not _has_kubelet(machine, self._control_plane.kubernetes):
                report.out_of_sync.append(machine)
                report.say(machine, "waiting for kubelet to update")
            else:
                report.ready.append(machine)

    async def _change(self, tier: Tier, machine: Object, state: MachineState, report: PlannerReport) -> None:
        """Drain the machine if necessary (drain.go), then give it its new plan."""
        annotations = state.annotations
        if self._drains(tier, machine, state):
            if annotations.get(DRAIN_OPTIONS) != tier.drain:
                await self._annotate(state.secret, {DRAIN_OPTIONS: tier.drain})
                return report.drains(machine, "draining node")
            error = _drain_error(annotations, "draining", machine)
            if error or annotations.get(DRAIN_DONE) != tier.drain:
                return report.drains(machine, error or "draining node")
        await self._write_plan(state)
        if annotations.get(DRAIN_DONE):
            report.say(machine, "drain completed")
        elif not state.status_message:
            report.say(machine, WAITING_FOR_PLAN)
        return None

    def _drains(self, tier: Tier, machine: Object, state: MachineState) -> bool:
        between = plans.needs_drain_between(state.applied, state.wanted)
        return plans.needs_drain(tier.drain) and between and bool(objects.status(machine).get("nodeRef") or {})

    async def _is_uncordoned(self, machine: Object, state: MachineState, report: PlannerReport) -> bool:
        """Let the drain controller uncordon a machine that is done, and report whether it has."""
        options, error = state.annotations.get(DRAIN_OPTIONS), ""
        if options and state.annotations.get(UNCORDON) != options:
            await self._annotate(state.secret, {UNCORDON: options})
        else:
            error = _drain_error(state.annotations, "undraining", machine)
            if not error and not state.annotations.get(UNCORDON):
                return True
        report.uncordons(machine, error or "waiting for uncordon to finish")
        return False

    async def _annotate(self, secret: Object, annotations: dict[str, str]) -> None:
        await self._write(secret, {"metadata": {"annotations": annotations}})

    async def _write_plan(self, state: MachineState) -> None:
        """Write a plan and delete the probes' statuses: they count again when the agent reports them (UpdatePlan)."""
        data = {"plan": plans.encoded(state.wanted), "probe-statuses": None}
        data |= {"max-failures": plans.encoded("-1"), "failure-threshold": plans.encoded("1")}
        await self._write(state.secret, {"metadata": {"annotations": {PROBES_PASSED: ""}}, "data": data})

    async def _write(self, secret: Object, body: Object) -> None:
        patch = MergePatch(body).at(objects.resource_version(secret))
        written = await self._client.patch(SECRETS, objects.name(secret), patch, namespace=FLEET_LOCAL)
        await self._secrets.seen(written)


def _drain_error(annotations: dict[str, str], step: str, machine: Object) -> str:
    """Return the planner's words about an error of the drain controller (checkForDrainError)."""
    error = annotations.get(DRAIN_ERROR) or ""
    return f"error {step} machine {objects.name(machine)}: {error}" if error else ""


def _versions(secret: Object, cluster: Object) -> tuple[str, int]:
    return objects.resource_version(secret), objects.metadata(cluster).get("generation") or 0


def _has_kubelet(machine: Object, wanted: str) -> bool:
    """Compare major, minor and patch only; without the node's info it counts (kubeletVersionUpToDate)."""
    info = objects.status(machine).get("nodeInfo")
    return not info or _release(info.get("kubeletVersion") or "") == _release(wanted)


def _release(version: str) -> str:
    return version.split("+", maxsplit=1)[0].split("-", maxsplit=1)[0]
