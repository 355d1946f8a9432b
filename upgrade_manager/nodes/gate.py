"""The gate: what must hold when a node's first Job starts or resumes, and when a drain hook is acknowledged.

The phase (pipeline/node_upgrade/phase.py) passes all decisions through the gate in the reconcile that writes;
sequencing.py has the order of nodes. After the acknowledgement of a pre-drain hook Rancher drains the node, and the
manager cannot stop that.

A row returns what holds the node back. A closed row is a blocker (pipeline/node_upgrade/waits.py), and the node's
decision loses its starts and acknowledgements. A post-drain hook passes the row of Rancher alone: a node that is back
is finished, whatever happens to other nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from upgrade_manager.api.keys import ANNOTATION_POST_HOOK, FLEET_LOCAL, WITNESS_LABEL, JobType
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.live_migration import kept_cordoned
from upgrade_manager.facts.machine_plan import Machine
from upgrade_manager.facts.node_obstacles import NodeObstacle, agent_log, not_ready, not_ready_ways_out
from upgrade_manager.kube import objects
from upgrade_manager.nodes.model import AcknowledgeHook, RemoveJob, RemoveTaint
from upgrade_manager.nodes.sequencing import (
    IN_PROGRESS,
    begins_again,
    drained_before,
    has_target,
    held_back,
    is_gated,
    is_in_progress,
    starts_upgrade,
    waits_for_tier,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from upgrade_manager.api.spec import UpgradePlanSpec
    from upgrade_manager.facts.holders import Holder
    from upgrade_manager.facts.missing_nodes import MissingNode
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.model import Decided, Decision, Decisions, Effect, NodeView
    from upgrade_manager.nodes.node_view import Observed


class GateRow(Enum):
    """The rows of the gate, each with the kind of the object that it names."""

    #: The Cluster requests something else than the manager has set.
    RANCHER = "Cluster", "changed"
    #: A user has paused the plan, or the node.
    PAUSE = "UpgradePlan", "paused"
    #: Two Machines name the node, or its Machine is being deleted.
    MACHINE = "Machine", "ambiguous"
    #: Another node is not Ready, cannot be observed, or Rancher cannot apply its plan.
    OTHER_NODE = "Node", "unavailable"
    #: The node was uncordoned while Rancher waits to drain it.
    CORDON = "Node", "uncordoned"
    #: Work of others holds the cluster; each object has its kind.
    HOLDER = "", "holder"
    #: No other node takes the node's VMs, because the upgrade itself has cordoned the others.
    TARGETS = "Node", "target"

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return str(self.value[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """A row that is closed for a node."""

    row: GateRow
    #: Empty for the kind of the row.
    kind: str = ""
    namespace: str = ""
    name: str
    #: A clause whose subject is the object, as "it".
    why: str
    #: The remedies in their order, each with its command.
    ways_out: tuple[Remedy, ...]
    #: True while the upgrade itself opens the row, so that it is not a blocker.
    is_passing: bool = False

    def __str__(self) -> str:
        """Return object and reason, for the progress of the node that waits."""
        return f"{self.kind or self.row.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The objects that the rows read beside the node itself."""

    #: The active nodes; no row depends on another one.
    decided: Sequence[Decided]
    #: Nodes of Machines that cannot be observed or take no part, with the reason why they are not available.
    unavailable: Mapping[str, Closed] = field(default_factory=dict)
    #: Nodes whose VMs have no other node, each with these VMs in messages.
    without_target: Mapping[str, str] = field(default_factory=dict)
    #: The row of Rancher, which is the same for all nodes; None while it is open.
    rancher: Closed | None = None
    #: The nodes that a pause holds before their next step, each with its row.
    paused: Mapping[str, Closed] = field(default_factory=dict)
    #: The holder of the cluster, for all nodes; the phase sets the field.
    holder: Holder | None = None

    @classmethod
    def of(
        cls,
        observed: Observed,
        decisions: Decisions,
        *,
        missing: Mapping[str, MissingNode],
        waiting: Mapping[str, Sequence[str]],
        rancher: Closed | None,
        paused: Mapping[str, Closed],
    ) -> Surroundings:
        """Read the nodes of Machines that take no part, if a decision depends on them.

        `missing` are the nodes that cannot be observed, recorded or not. `waiting` are the VMs, by their node, that
        only an earlier upgrade keeps there.
        """
        decided = decisions.active
        if not reads_others(decided):
            return cls(decided=decided, rancher=rancher, paused=paused)
        known = decisions.names
        found = {**{name: _away(name, one) for name, one in missing.items()}, **_away_beside(observed, known)}
        lacking = {node: f"VMs {name_list(vms)} of node {node}" for node, vms in waiting.items()}
        if not any(_takes_vms(node) for node in observed.nodes.list() if objects.name(node) not in known):
            # A node that waits or is done takes VMs, unless it is a witness.
            others = decisions.all()
            names = (view.name for view, _ in decided if not has_target(view, others))
            lacking = {**{name: f"the VMs of node {name}" for name in names}, **lacking}
        return cls(decided=decided, unavailable=found, without_target=lacking, rancher=rancher, paused=paused)


def reads_others(decided: Iterable[Decided]) -> bool:
    """Return True if a decision depends on nodes that take no part."""
    return any(is_gated(view, effect) for view, decision in decided for effect in decision.effects)


def unobserved_beside(observed: Observed, decisions: Decisions) -> list[str]:
    """Return the nodes of Machines that take no part and cannot be observed, if a decision depends on them."""
    if not reads_others(decisions.active):
        return []
    nodes = {machine.node for machine in observed.machines.derive(Machine.of)} - decisions.names - {""}
    return sorted(name for name in nodes if observed.nodes.get(name) is None)


def _away_beside(observed: Observed, known: Collection[str]) -> dict[str, Closed]:
    """Return the nodes that take no part and are away, such as nodes that join or leave, each with its row."""
    found = {}
    for machine in observed.machines.derive(Machine.of):
        name = machine.node
        node = observed.nodes.get(name)
        if name in known or node is None:
            continue
        if not objects.is_condition_true(node, "Ready"):
            found[name] = down(name, "")
        elif machine.plan_error:
            found[name] = _without_plan(name, machine.plan_error)
    return found


def _takes_vms(node: Object) -> bool:
    is_schedulable = objects.is_condition_true(node, "Ready") and not objects.is_true(node, "spec", "unschedulable")
    return is_schedulable and WITNESS_LABEL not in objects.labels(node)


Row: TypeAlias = "Callable[[NodeView, Surroundings], Closed | None]"


def may_pause(spec: UpgradePlanSpec) -> bool:
    """Return True for a plan that may pause; others enter none of the modules about pauses."""
    option = spec.node_upgrade_option
    return bool(spec.paused or option.pause_after or option.pause_before)


def hold_back(decisions: Decisions, around: Surroundings) -> tuple[Decisions, dict[str, Closed]]:
    """Return the decisions without the steps that the gate forbids, and the closed row by node."""
    result: list[Decided] = []
    closed: dict[str, Closed] = {}
    for view, decision in decisions.active:
        found = _closed_row(view, decision, around)
        if found is not None:
            closed[view.name] = found
            result.append((view, _held(view, decision, found)))
        else:
            result.append((view, decision))
    return decisions.with_active(result), closed


def _closed_row(view: NodeView, decision: Decision, around: Surroundings) -> Closed | None:
    if any(is_gated(view, effect) for effect in decision.effects):
        # The VMs have left the node when its pre-drain Job is complete.
        is_left = any(isinstance(effect, AcknowledgeHook) for effect in decision.effects)
        rows = [row for row in ROWS if row is not _targets] if is_left else ROWS
        return next((found for row in rows if (found := row(view, around)) is not None), None)
    if any(begins_again(view, effect) for effect in decision.effects) and view.name in around.paused:
        return around.paused[view.name]
    return around.rancher if any(isinstance(effect, AcknowledgeHook) for effect in decision.effects) else None


def _held(view: NodeView, decision: Decision, closed: Closed) -> Decision:
    """Return the decision without its gated steps; the row of Rancher holds back each acknowledgement."""
    if closed.row is GateRow.RANCHER:
        kept = tuple(effect for effect in decision.effects if not _is_post_drain(effect))
        decision = replace(decision, effects=kept)
    elif closed.row is not GateRow.PAUSE and _is_prepared(view, decision) and not view.cordoned:
        decision = replace(decision, effects=_prepare_again(view))
    held = held_back(view, decision, reason=f"for {closed}")
    if closed.row is not GateRow.PAUSE:
        return held
    return replace(held, effects=tuple(effect for effect in held.effects if not begins_again(view, effect)))


def _is_prepared(view: NodeView, decision: Decision) -> bool:
    """Return True if the node's pre-drain Job is complete, and its pre-drain hook would be acknowledged."""
    is_due = any(isinstance(effect, AcknowledgeHook) and effect.number for effect in decision.effects)
    return is_due and JobType.PRE_DRAIN in view.jobs and not view.post_drain.requested


def _prepare_again(view: NodeView) -> tuple[Effect, ...]:
    """Run the Job once more after the next cordon: a node that was uncordoned takes VMs, which the Job has not seen.

    Without its taint the node takes the VMs of a node for which a user has uncordoned it (row of targets).
    """
    taint = (RemoveTaint(node=view.name),) if view.tainted else ()
    return (*taint, RemoveJob(node=view.name, job_type=JobType.PRE_DRAIN))


def _is_post_drain(effect: Effect) -> bool:
    return isinstance(effect, AcknowledgeHook) and effect.annotation == ANNOTATION_POST_HOOK


def _rancher(_: NodeView, around: Surroundings) -> Closed | None:
    return around.rancher


def _pause(view: NodeView, around: Surroundings) -> Closed | None:
    return around.paused.get(view.name)


def _machine(view: NodeView, _: Surroundings) -> Closed | None:
    if not view.machine_problem:
        return None
    return Closed(
        row=GateRow.MACHINE,
        namespace=FLEET_LOCAL,
        name=view.machine,
        why=view.machine_problem,
        ways_out=view.machine_ways_out,
    )


def _holder(_: NodeView, around: Surroundings) -> Closed | None:
    found = around.holder
    if found is None:
        return None
    return Closed(
        row=GateRow.HOLDER,
        kind=found.kind,
        namespace=found.namespace,
        name=found.name,
        why=f"it {found.why}",
        ways_out=found.ways_out,
    )


def _cordon(view: NodeView, _: Surroundings) -> Closed | None:
    if view.cordoned or not (view.pre_drain.pending or view.post_drain.pending):
        return None
    why = "it was uncordoned while Rancher waits to drain it"
    if not view.pre_drain.pending:
        why = "it was uncordoned after its drain, so that VMs may be back"
    return Closed(
        row=GateRow.CORDON,
        name=view.name,
        why=why,
        ways_out=(Remedy("Cordon it", command=f"kubectl cordon {view.name}"),),
    )


def _other_node(view: NodeView, around: Surroundings) -> Closed | None:
    """Close while another node is away: two control-plane nodes away cost etcd its quorum, which Rancher permits."""
    for other, decision in around.decided:
        if other.name == view.name or other.name in around.unavailable:
            continue
        # The order of nodes waits for a node in progress that is not Ready.
        if not other.ready and not is_in_progress(other, decision):
            return down(other.name, other.ready_since)
        if other.plan_error:
            return _without_plan(other.name, other.plan_error)
    return next((row for name, row in around.unavailable.items() if name != view.name), None)


def _without_plan(node: str, error: str) -> Closed:
    why = f"Rancher cannot apply its plan ({error})"
    return Closed(row=GateRow.OTHER_NODE, name=node, why=why, ways_out=(agent_log(node),))


def is_down_before(view: NodeView, decision: Decision) -> bool:
    """Return True for a node that went down before its turn, so that no other node may be drained."""
    return not view.ready and decision.state is None and not decision.holds and view.state not in IN_PROGRESS


def down(node: str, since: str) -> Closed:
    """Return the row for a node that is not Ready since that time, which is empty if unknown."""
    return _away(node, NodeObstacle(why=not_ready(since), ways_out=not_ready_ways_out(node)))


def _away(node: str, obstacle: NodeObstacle) -> Closed:
    return Closed(row=GateRow.OTHER_NODE, name=node, why=obstacle.why, ways_out=obstacle.ways_out)


def _targets(view: NodeView, around: Surroundings) -> Closed | None:
    """Close while drains of the upgrade keep the only other nodes that could take the VMs cordoned."""
    vms = around.without_target.get(view.name, "")
    if view.was_drained or not vms:
        return None
    others = (pair for pair in around.decided if pair[0].name != view.name)
    other = next((one for one, decision in others if _stays_cordoned(one, decision, before=view)), None)
    if other is None:
        return None
    drained = f"it is cordoned for its own drain, and {vms} have no other node"
    return Closed(
        row=GateRow.TARGETS,
        name=other.name,
        why=kept_cordoned("it", vms) if other.is_held else drained,
        # Without an undo: the row of cordons asks to cordon it again before its own upgrade, which uncordons it.
        ways_out=(Remedy("Let it take VMs", command=f"kubectl uncordon {other.name}"),),
    )


def _stays_cordoned(view: NodeView, decision: Decision, *, before: NodeView) -> bool:
    """Return True for a node that stays cordoned until the other node is drained, unless a user uncordons it.

    An earlier upgrade holds it, it is paused, or its drain began before Rancher drained the other one, which is done,
    again.
    """
    awaits_drain = view.cordoned and view.pre_drain.pending
    return view.is_held or (awaits_drain and (decision.state is NodeState.UPGRADE_PAUSED or before.is_upgraded))


def with_passing(closed: Mapping[str, Closed], decided: Sequence[Decided]) -> dict[str, Closed]:
    """Mark the rows that the upgrade itself opens, by the decisions that are carried out."""
    pairs = {pair[0].name: pair for pair in decided}
    return {node: replace(row, is_passing=_is_passing(row, pairs, pairs[node][0])) for node, row in closed.items()}


def _is_passing(row: Closed, pairs: Mapping[str, Decided], view: NodeView) -> bool:
    """Return True if the held node is being finished, and does not itself wait for the node that waits for it.

    Rancher may drain it without the manager, after a user has acknowledged its hook. A node that a user has uncordoned
    for the VMs of another one is cordoned again after that one's upgrade.
    """
    if row.row is GateRow.PAUSE:
        return True
    if row.row is GateRow.CORDON:
        return bool(drained_before(view, list(pairs.values())))
    if row.row is not GateRow.TARGETS:
        return False
    other, decision = pairs[row.name]
    is_going_on = other.under_way or is_in_progress(other, decision) or any(map(starts_upgrade, decision.effects))
    return is_going_on and not waits_for_tier(other, decision, view)


#: In the order of the reports: causes before effects.
ROWS: tuple[Row, ...] = (_rancher, _pause, _machine, _other_node, _cordon, _targets, _holder)
