"""The waits of the node upgrade, which the finders of blockers read.

report.py names these waits; blockers/table.py has the finders, lost_hooks.py the nodes that Rancher does not drain.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.keys import (
    FLEET_LOCAL,
    PROVISIONING_CLUSTER,
    RKE_DRAIN_DONE,
    RKE_DRAIN_ERROR,
    RKE_DRAIN_OPTIONS,
    JobType,
)
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.deadlines import PLANNER
from upgrade_manager.blockers.known_wait import (
    CordonedNodeWait,
    ForeignHookWait,
    LeftoverHookWait,
    MissingNodeWait,
    PausedNodeWait,
    RefusedCordonWait,
)
from upgrade_manager.blockers.wait import DrainWait, EvacuationWait, LostNodeWait, RancherWait, RebootWait
from upgrade_manager.facts import drain_hooks, node_obstacles
from upgrade_manager.facts.evictions import BUDGET_GATE
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.facts.machine_plan import awaits_drain, held_nodes
from upgrade_manager.facts.vm_obstacles import EVACUATION
from upgrade_manager.facts.volumes import VOLUME_GATE
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.nodes.drain import runs_release
from upgrade_manager.nodes.model import AcknowledgeHook
from upgrade_manager.nodes.node_view import finished_seconds
from upgrade_manager.nodes.pending_hooks import DelayKind
from upgrade_manager.nodes.sequencing import FIRST_JOBS
from upgrade_manager.pipeline.blocker_report import first_seen, known_blockers, resumed_wait
from upgrade_manager.pipeline.node_upgrade.job_waits import JOB_EFFECTS, job_waits, running_waits
from upgrade_manager.pipeline.node_upgrade.lost_hooks import LostHooks
from upgrade_manager.pipeline.settings import rancher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.blockers.known_wait import KnownWait
    from upgrade_manager.blockers.wait import ReturnWait, Wait
    from upgrade_manager.facts.job_state import JobState
    from upgrade_manager.facts.missing_nodes import MissingNode
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.model import Decided, Decision, NodeView
    from upgrade_manager.nodes.node_view import Observed
    from upgrade_manager.nodes.pending_hooks import Delay
    from upgrade_manager.pipeline.context import ReconcileContext


#: The states in which a node has to run the release.
_RUNS_RELEASE = frozenset({NodeState.WAITING_REBOOT, NodeState.POST_DRAINED, NodeState.SINGLE_NODE_UPGRADED})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWaits:
    """The waits of one reconcile."""

    ctx: ReconcileContext
    observed: Observed
    release_os: str
    #: Rancher's cluster; None if it is not known.
    cluster: Object | None
    #: Recorded nodes that cannot be observed.
    missing: Mapping[str, MissingNode]

    def of_nodes(self, unfinished: Iterable[Decided]) -> Iterator[Wait]:
        """Yield the waits of nodes that are not done."""
        self._idle_since(self.ctx.now(), is_idle=False)
        finished = finished_seconds(self.observed.jobs, self.ctx.owner.uid)
        for view, decision in unfinished:
            if view.name in self.missing:
                yield missing_wait(self.ctx, view.name, self.missing[view.name])
                continue
            for type_, job in view.jobs.items():
                # The phase resumes a first Job itself, when the node's turn comes.
                is_first = job.suspended and type_ in FIRST_JOBS
                if job.progress is Progress.RUNNING and not (is_first or job.holds):
                    yield from resumed_wait(self.ctx, job, work=type_, node=view.name) or running_waits(
                        self.ctx, job, work=type_, node=view.name, finished=finished.get(type_, ())
                    )
            if any(isinstance(effect, JOB_EFFECTS) for effect in decision.effects):
                yield from job_waits(self.ctx, self.observed.jobs, view, decision.effects)
            if decision.state is NodeState.UPGRADE_PAUSED:
                yield self._paused(view)
            if view.cordon_error and decision.holds:
                yield self._refused_cordon(view.name, view.cordon_error)
            yield from self._drain(view, decision)
            yield from self._return(view, decision)
            if others := (view.pre_drain.others or view.post_drain.others) if decision.state or decision.holds else ():
                yield self._foreign(view, others)

    def of_rancher(self, undrained: Sequence[str], *, kubernetes: str, detail: str, counted: str) -> Iterator[Wait]:
        """Yield the wait while no node is under way; `undrained` nodes run the release's Kubernetes already."""
        since = self._last_movement()
        if not undrained:
            yield self._rancher(since, detail=detail, counted=counted)
            return
        yield self._hooks.undrained(undrained, kubernetes=kubernetes, since=since)

    def of_forgotten(self, decided: Iterable[Decided]) -> Iterator[Wait]:
        """Yield the wait for nodes whose drain Rancher has forgotten."""
        views = [view for view, decision in decided if decision.is_forgotten]
        if views:
            yield self._hooks.forgotten(views)

    @property
    def _hooks(self) -> LostHooks:
        return LostHooks(ctx=self.ctx, nodes=self.observed.nodes, cluster=self.cluster)

    def of_delays(self, found: Iterable[Delay]) -> Iterator[Wait]:
        """Yield the waits for hooks and cordoned nodes that delay the end, when all nodes are done."""
        moved = self._last_movement()
        for delay in found:
            if delay.kind is DelayKind.RANCHER:
                yield self._rancher(moved, detail=str(delay), node=delay.node)
            elif delay.kind is DelayKind.CORDON:
                remedies = node_obstacles.cordoned(delay.node).ways_out
                yield known_wait(self.ctx, CordonedNodeWait, delay.node, detail=delay.problem, remedies=remedies)
            elif delay.kind is DelayKind.DRAIN:
                yield self._begun_drain(delay)
            else:
                kind = ForeignHookWait if delay.kind is DelayKind.FOREIGN else LeftoverHookWait
                known = (delay.remedy,) if delay.remedy else ()
                remedies = known or self._foreign_remedies(delay.hooks, drained=delay.secret)
                is_foreign = delay.kind is DelayKind.FOREIGN
                detail = node_obstacles.foreign_hooks("", delay.hooks) if is_foreign else delay.problem
                yield self._hook(kind, delay.secret, delay.node, detail=detail, remedies=remedies)

    def _begun_drain(self, delay: Delay) -> Wait:
        """Return the wait for a drain without a hook for the manager, or for the cordon with which it begins."""
        error = objects.annotations_of(self._secret(delay.secret)).get(RKE_DRAIN_ERROR, "")
        is_cordoned = objects.is_true(self.observed.nodes.get(delay.node) or {}, "spec", "unschedulable")
        if error and not is_cordoned:
            return self._refused_cordon(delay.node, error)
        return self._rancher_drain(delay.node, delay.secret, first_seen(self.ctx, DrainWait, delay.secret))

    def _paused(self, view: NodeView) -> Wait:
        job = next((job for job in view.jobs.values() if job.suspended), None)
        left = [name for name in self.ctx.plan.spec.node_upgrade_option.pause_nodes if name != view.name]
        patch = json.dumps({"spec": {"nodeUpgradeOption": {"pauseNodes": left}}}, separators=(",", ":"))
        command = f"kubectl patch {UPGRADE_PLANS.name} {self.ctx.owner.name} --type=merge -p '{patch}'"
        return known_wait(
            self.ctx,
            PausedNodeWait,
            view.name,
            since=parse_time(job.created) if job else None,
            detail="it is next and paused by you",
            remedies=(Remedy("Remove it from the list", command=command),),
        )

    def _drain(self, view: NodeView, decision: Decision) -> Iterator[Wait]:
        """Yield the waits for the node's VMs to leave, and for Rancher to drain the node afterwards."""
        job, state = view.jobs.get(JobType.PRE_DRAIN), decision.state
        if job is None and view.pre_drain.requested and not (view.pre_drain.others or view.post_drain.requested):
            if not view.pre_drain.pending:
                yield self._rancher_drain(view.name, view.secret, first_seen(self.ctx, DrainWait, view.secret))
            return
        is_draining = state in {NodeState.PRE_DRAINING, NodeState.PRE_DRAINED} or (job is not None and job.repeated)
        if job is None or job.suspended or not is_draining:
            return
        is_running = job.progress is Progress.RUNNING
        began = parse_time(job.created) or first_seen(self.ctx, EvacuationWait, view.name)
        yield self._evacuation(view, began, job)
        # The gate has removed the acknowledgement of a hook that it holds back, and Rancher waits.
        is_acknowledged = not view.pre_drain.pending or any(
            isinstance(one, AcknowledgeHook) for one in decision.effects
        )
        if not is_running and view.secret and is_acknowledged and not view.pre_drain.others:
            since = parse_time(job.completed) or first_seen(self.ctx, DrainWait, view.secret)
            yield self._rancher_drain(view.name, view.secret, since)

    def _secret(self, name: str) -> Object:
        return self.observed.secrets.get(name, FLEET_LOCAL) or {}

    def _rancher_drain(self, node: str, secret: str, since: datetime) -> Wait:
        hooks = objects.annotations_of(self._secret(secret))
        is_drained = hooks.get(RKE_DRAIN_DONE, "") == hooks.get(RKE_DRAIN_OPTIONS)
        return DrainWait(
            namespace=FLEET_LOCAL,
            name=secret,
            node=node,
            since=since,
            detail="" if is_drained else hooks.get(RKE_DRAIN_ERROR, ""),
            undisturbed=self._drains_since(node, since),
            is_drained=is_drained,
        )

    def _drains_since(self, node: str, began: datetime) -> datetime:
        """Return the time since which, as this process has seen, no known obstacle holds the drain up."""
        is_held = bool(self._known(BlockerReason.DRAIN_FAILING, node))
        now, recorded = self._now(), self._silent_since(began, node=node)
        seen = self.ctx.informers.first_seen.since(("drain held up", node), is_held, now=now, known=recorded)
        return now if is_held else max(began, seen)

    def _silent_since(self, recorded: datetime, *, node: str) -> datetime:
        """Return the time since which Rancher does nothing, for a process that started afterwards.

        If the recorded time is overdue and the status has no blocker, an obstacle has just ended or no manager ran, and
        the time begins now.
        """
        now, silent = self._now(), self._known(BlockerReason.RANCHER_SILENT, node)
        return min((one.since for one in silent), default=now if now - recorded >= PLANNER else recorded)

    def _known(self, reason: BlockerReason, node: str) -> list[Blocker]:
        """Return the blockers of that reason and node in the plan's status."""
        known = known_blockers(self.ctx)
        return [one for one in known if one.reason is reason and one.node == node]

    def _now(self) -> datetime:
        """Return the time in whole seconds, like the recorded times and the times of blockers."""
        return self.ctx.now().replace(microsecond=0)

    def _evacuation(self, view: NodeView, created: datetime, job: JobState) -> Wait:
        """Return the wait since the Job began, whose taint lets KubeVirt move the VMs.

        A later attempt of the Job waits for volumes again, with the taint. Harvester's toolkit reports no step: there
        the taint shows that the wait for volumes is over, also if another client removes the taint later.
        """
        key, first_seen = ("tainted", view.name, job.uid), self.ctx.informers.first_seen
        has_released, seen = first_seen.latched(key, value=view.tainted, now=self._now(), known=created)
        is_evacuating = job.step.endswith(f" {EVACUATION}")
        began = parse_time(job.progressed) if is_evacuating else None
        name, released = view.name, began or max(created, seen)
        # A later attempt of the Job waits for the same VMs.
        released = min([released, *(one.since for one in self._known(BlockerReason.MIGRATION_STUCK, name))])
        return EvacuationWait(
            name=name,
            node=name,
            since=created,
            released=released,
            is_running=job.progress is Progress.RUNNING,
            is_at_gate=job.step.endswith(f" {VOLUME_GATE}") if job.step else not has_released,
            is_evacuating=is_evacuating or (not job.step and has_released),
            invalid_policies=job.invalid_policies,
            at_budgets=parse_time(job.progressed) if job.step.endswith(f" {BUDGET_GATE}") else None,
        )

    def _return(self, view: NodeView, decision: Decision) -> Iterator[Wait]:
        """Yield the wait for a node that has to become Ready, or to run the release's OS."""
        state, changed = decision.state, parse_time(view.ready_since)
        is_lost = not view.ready or (state and state.upgraded and not runs_release(view, self.release_os))
        kind: type[ReturnWait] = LostNodeWait
        since = changed
        if state is NodeState.WAITING_REBOOT:
            kind, since = RebootWait, parse_time(view.os_upgrade.completed) if view.os_upgrade else None
        elif not is_lost or not (state or decision.holds):
            return
        yield return_wait(
            self.ctx,
            kind,
            view,
            # Before its reboot the node runs the previous release, as it should.
            release_os=self.release_os if state in _RUNS_RELEASE else "",
            release_kubernetes=view.kubernetes_wanted if state in _RUNS_RELEASE else "",
            since=since,
            changed=changed,
        )

    def _refused_cordon(self, node: str, error: str) -> Wait:
        """Return the wait of a node that Rancher cannot cordon: Harvester keeps one node schedulable."""
        nodes = self.observed.nodes.list()
        cordoned = {objects.name(one) for one in nodes if objects.is_true(one, "spec", "unschedulable")}
        secrets, machines = self.observed.secrets.list(), self.observed.machines.list()
        held = held_nodes(cordoned, secrets, machines)
        # A drain that only waits for its hook may begin again; the gate asks for its cordon before.
        waits = held_nodes(held, secrets, machines, when=awaits_drain)
        found = node_obstacles.cordon_refused(error, [*sorted(cordoned - held), *sorted(waits)])
        return known_wait(self.ctx, RefusedCordonWait, node, detail=found.why, remedies=found.ways_out)

    def _foreign(self, view: NodeView, others: Sequence[str]) -> Wait:
        detail = node_obstacles.foreign_hooks("", others)
        drained = "" if view.pre_drain.others else view.secret
        remedies = self._foreign_remedies(others, drained=drained)
        return self._hook(ForeignHookWait, view.secret, view.name, detail=detail, remedies=remedies)

    def _foreign_remedies(self, hooks: Sequence[str], *, drained: str) -> tuple[Remedy, ...]:
        strategy = rancher.rke_config(self.cluster).get("upgradeStrategy") if self.cluster else None
        return drain_hooks.foreign_ways_out(strategy, hooks, drained=drained)

    def _rancher(self, since: datetime, *, detail: str, node: str = "", counted: str = "") -> Wait:
        name = PROVISIONING_CLUSTER
        return RancherWait(namespace=FLEET_LOCAL, name=name, node=node, since=since, detail=detail, counted=counted)

    def _last_movement(self) -> datetime:
        """Return the last time at which a Job started or ended, a node's readiness changed, or the phase began."""
        ready = self.observed.nodes.derive(_ready_time)
        jobs = (time for times in self.observed.jobs.derive(_job_times) for time in times)
        # Times of the API server compare as texts, which is faster for a thousand nodes.
        newest = parse_time(max([*ready, *jobs], default=""))
        times = [time for time in (newest, self.ctx.status.phase_began) if time is not None]
        recorded = max(times, default=self.ctx.now())
        return max(recorded, self._idle_since(recorded, is_idle=True))

    def _idle_since(self, recorded: datetime, *, is_idle: bool) -> datetime:
        """Return the time since which, as this process has seen, no node is under way; else the recorded time.

        No object records the end of a drain that Rancher repeats, because the manager removes the Job.
        """
        known = self._silent_since(recorded, node="")
        return self.ctx.informers.first_seen.since("no node under way", is_idle, now=self._now(), known=known)

    def _hook(self, kind: type[KnownWait], name: str, node: str, *, detail: str, remedies: tuple[Remedy, ...]) -> Wait:
        began = first_seen(self.ctx, kind, name)
        return kind(namespace=FLEET_LOCAL, name=name, node=node, since=began, detail=detail, remedies=remedies)


def missing_wait(ctx: ReconcileContext, node: str, found: MissingNode) -> MissingNodeWait:
    """Return the wait for a recorded node that cannot be observed."""
    return MissingNodeWait(
        name=node,
        node=node,
        since=first_seen(ctx, MissingNodeWait, node),
        detail=found.why,
        remedies=found.ways_out,
        is_passing=found.is_passing,
    )


def known_wait(
    ctx: ReconcileContext,
    kind: type[KnownWait],
    name: str,
    *,
    since: datetime | None = None,
    detail: str,
    remedies: tuple[Remedy, ...],
) -> KnownWait:
    """Return a wait for a node, since that time or since this process saw it first."""
    return kind(name=name, node=name, since=since or first_seen(ctx, kind, name), detail=detail, remedies=remedies)


def return_wait(
    ctx: ReconcileContext,
    kind: type[ReturnWait],
    view: NodeView,
    *,
    release_os: str,
    release_kubernetes: str,
    since: datetime | None,
    changed: datetime | None,
) -> ReturnWait:
    """Return a wait for a node to come back, since that time or since this process saw it first."""
    began = since or first_seen(ctx, kind, view.name)
    return kind(
        name=view.name,
        node=view.name,
        since=began,
        release_os=release_os,
        release_kubernetes=release_kubernetes,
        ready_changed=changed or began,
        is_ready=view.ready,
        has_rebooted=view.has_rebooted,
    )


def ready_changed(node: Object | None) -> datetime | None:
    """Return the time at which the node became Ready or NotReady; None if the Node lacks the time."""
    return parse_time(_ready_time(node))


def _ready_time(node: Object | None) -> str:
    return objects.text(objects.condition(node, "Ready"), "lastTransitionTime")


def _job_times(job: Object) -> list[str]:
    ended = [objects.text(one, "lastTransitionTime") for one in objects.items(job, "status", "conditions")]
    return [objects.text(job, "metadata", "creationTimestamp"), *ended]
