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

from upgrade_manager.api.keys import ANNOTATION_PRE_HOOK, FLEET_LOCAL
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts.node_obstacles import agent_log, not_ready
from upgrade_manager.kube import objects
from upgrade_manager.nodes.model import AcknowledgeHook
from upgrade_manager.nodes.node_view import machine_nodes
from upgrade_manager.nodes.sequencing import IN_PROGRESS, has_target, is_in_progress, starts_upgrade

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from upgrade_manager.nodes.model import Decision, Effect, NodeView
    from upgrade_manager.nodes.node_view import Decided, Observed


class GateRow(Enum):
    """The rows of the gate, each with the kind of the object that it names."""

    #: The Cluster requests something else than the manager has set.
    RANCHER = "Cluster", "changed"
    #: Two Machines name the node, or its Machine is being deleted.
    MACHINE = "Machine", "ambiguous"
    #: Another node is not Ready, cannot be observed, or Rancher cannot apply its plan.
    OTHER_NODE = "Node", "unavailable"
    #: The node was uncordoned while Rancher waits to drain it.
    CORDON = "Node", "uncordoned"
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
    namespace: str = ""
    name: str
    #: A clause whose subject is the object, as "it".
    why: str
    #: The remedies in their order, each with its command.
    ways_out: tuple[str, ...]
    #: True while the upgrade itself opens the row, so that it is no blocker.
    is_passing: bool = False

    def __str__(self) -> str:
        """Return object and reason, for the progress of the node that waits."""
        return f"{self.row.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The objects that the rows read beside the node itself."""

    decided: Sequence[Decided]
    #: Nodes of Machines that cannot be observed or take no part, with the reason why they are not available.
    unavailable: Mapping[str, str] = field(default_factory=dict)
    #: The row of Rancher, which is the same for all nodes; None while it is open.
    rancher: Closed | None = None

    @classmethod
    def of(
        cls, observed: Observed, decided: Sequence[Decided], *, missing: Mapping[str, str], rancher: Closed | None
    ) -> Surroundings:
        """Read the nodes of Machines that take no part, if a decision depends on them.

        `missing` are recorded nodes that cannot be observed, each with the reason.
        """
        found = {}
        if any(is_gated(effect) for _, decision in decided for effect in decision.effects):
            found = {**missing, **_away_beside(observed, {view.name for view, _ in decided})}
        return cls(decided=decided, unavailable=found, rancher=rancher)


def _away_beside(observed: Observed, known: Collection[str]) -> dict[str, str]:
    """Return the other nodes of Machines that are away, such as nodes that join, each with the reason."""
    found = {}
    for name in machine_nodes(observed.machines):
        if name in known:
            continue
        node = observed.nodes.get(name)
        if node is None:
            found[name] = "its Machine exists, but its Node does not exist or lacks the managed label"
        elif not objects.is_condition_true(node, "Ready"):
            found[name] = not_ready("")
    return found


Row: TypeAlias = "Callable[[NodeView, Surroundings], Closed | None]"


def hold_back(decided: Sequence[Decided], around: Surroundings) -> tuple[list[Decided], dict[str, Closed]]:
    """Return the decisions without the steps that the gate forbids, and the closed row by node."""
    result: list[Decided] = []
    closed: dict[str, Closed] = {}
    for view, decision in decided:
        found = _closed_row(view, decision, around)
        if found is not None:
            closed[view.name] = found
            result.append((view, _held(view, decision, found)))
        else:
            result.append((view, decision))
    return result, closed


def _closed_row(view: NodeView, decision: Decision, around: Surroundings) -> Closed | None:
    if any(map(is_gated, decision.effects)):
        return next((found for row in ROWS if (found := row(view, around)) is not None), None)
    return around.rancher if any(isinstance(effect, AcknowledgeHook) for effect in decision.effects) else None


def is_gated(effect: Effect) -> bool:
    """Return True for the steps that lead to a drain; an acknowledged post-drain hook ends the drain."""
    return starts_upgrade(effect) or (isinstance(effect, AcknowledgeHook) and effect.annotation == ANNOTATION_PRE_HOOK)


def _held(view: NodeView, decision: Decision, closed: Closed) -> Decision:
    """Return the decision without its starts and acknowledgements."""
    state = decision.state
    if any(map(starts_upgrade, decision.effects)) and not (state and state.upgraded):
        state = None
    elif state is NodeState.PRE_DRAINED:
        # The node reaches this state with the acknowledgement.
        state = NodeState.PRE_DRAINING
    effects = tuple(
        effect for effect in decision.effects if not (starts_upgrade(effect) or isinstance(effect, AcknowledgeHook))
    )
    return replace(decision, state=state, effects=effects, progress=f"{view.name}: waiting for {closed}", holds=True)


def _rancher(_: NodeView, around: Surroundings) -> Closed | None:
    return around.rancher


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


def _cordon(view: NodeView, _: Surroundings) -> Closed | None:
    if view.cordoned or not view.pre_drain.pending:
        return None
    why = "it was uncordoned while Rancher waits to drain it"
    return Closed(row=GateRow.CORDON, name=view.name, why=why, ways_out=(f"kubectl cordon {view.name}",))


def _other_node(view: NodeView, around: Surroundings) -> Closed | None:
    """Close while another node is away: two control-plane nodes away cost etcd its quorum, which Rancher permits."""
    for other, decision in around.decided:
        if other.name == view.name or other.name in around.unavailable or is_in_progress(other, decision):
            continue
        if not other.ready:
            return down(other.name, other.ready_since)
        if other.plan_error:
            why = f"Rancher cannot apply its plan ({other.plan_error})"
            return Closed(row=GateRow.OTHER_NODE, name=other.name, why=why, ways_out=(agent_log(other.name),))
    away = next((name for name in around.unavailable if name != view.name), None)
    return _away(away, around.unavailable[away]) if away is not None else None


def is_down_before(view: NodeView, decision: Decision) -> bool:
    """Return True for a node that went down before its turn, so that no other node may be drained."""
    return not view.ready and decision.state is None and not decision.holds and view.state not in IN_PROGRESS


def down(node: str, since: str) -> Closed:
    """Return the row for a node that is not Ready since that time, which is empty if unknown."""
    return _away(node, not_ready(since))


def _away(node: str, why: str) -> Closed:
    ways_out = (f"Show its conditions: kubectl describe node {node}", f"Check the console of node {node}, and start it")
    return Closed(row=GateRow.OTHER_NODE, name=node, why=why, ways_out=ways_out)


def _targets(view: NodeView, around: Surroundings) -> Closed | None:
    """Close while an earlier drain of the upgrade keeps the only other nodes that could take the VMs cordoned."""
    held = next((pair for pair in around.decided if pair[0].name != view.name and pair[0].is_held), None)
    if view.is_held or held is None or has_target(view, around.decided):
        return None
    other, decision = held
    return Closed(
        row=GateRow.TARGETS,
        name=other.name,
        why=f"an earlier drain has left it cordoned, and the VMs of node {view.name} have no other node",
        ways_out=(f"Let it take VMs: kubectl uncordon {other.name}",),
        is_passing=is_in_progress(other, decision) or any(map(starts_upgrade, decision.effects)),
    )


#: In the order of the reports: causes before effects.
ROWS: tuple[Row, ...] = (_rancher, _machine, _other_node, _cordon, _targets)
