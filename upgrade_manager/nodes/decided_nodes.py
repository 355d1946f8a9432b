"""Decides about all nodes of a plan: pipeline/node_upgrade/phase.py calls it in each reconcile.

A cluster may have a thousand nodes, and each change of one of them causes a reconcile. Therefore only nodes of which an
input has changed are decided about again; the decisions are those of a process that has just started.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import ANNOTATION_MACHINE
from upgrade_manager.api.names import label_value
from upgrade_manager.api.node_states import NodeState, state_of
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.facts.machine_plan import Machine, counting, machine_of, machine_plans, node_of_machine
from upgrade_manager.kube import objects
from upgrade_manager.nodes.model import Decisions, Requests
from upgrade_manager.nodes.node_view import Inputs, decide, jobs_of, label_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from upgrade_manager.facts.machine_plan import MachinePlan
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.model import Decided, Decision, NodeView
    from upgrade_manager.nodes.node_view import Observed, Shared

#: Nodes that are decided about at once: the event loop serves others within 30 ms.
SLICE = 200
#: The fields of the status entry of a node to which nothing happens.
_PLAIN = frozenset({"state", "since", "drain"})


class DecidedNodes:
    """The latest decisions about the nodes of one plan, and their inputs."""

    def __init__(self) -> None:
        self._shared: Shared | None = None
        self._observed: Observed | None = None
        self._marks: tuple[int, ...] = ()
        #: The status entries by node.
        self._entries: dict[str, Any] = {}
        #: The nodes about which to decide again.
        self._changed: set[str] = set()
        self._decisions = Decisions()

    async def decide(self, entries: Mapping[str, Any], observed: Observed, shared: Shared) -> Decisions:
        """Decide about every node that was recorded when the phase began, and about every node that Rancher drains.

        `entries` are the nodes' entries in the plan's status. In a cluster of a single node only that node takes part:
        Rancher does not upgrade nodes that join it. Other tasks run between two slices of many nodes.
        """
        self._add_changes(entries, observed, shared)
        while self._changed:
            names = sorted(self._changed)[:SLICE]
            self._put({name: _decide(name, entries, observed, shared) for name in names}, entries)
            self._changed -= {*names}
            if self._changed:
                await asyncio.sleep(0)
                self._add_changes(entries, observed, shared)
        return self._decisions

    def _add_changes(self, entries: Mapping[str, Any], observed: Observed, shared: Shared) -> None:
        """Add the nodes of which an input has changed to those about which to decide; all if it may be any node."""
        changed = self._nodes_with_changes(entries, observed) if shared == self._shared else None
        if changed is None:
            self._decisions = Decisions()
            changed = set(observed.nodes.derive(objects.name))
        self._changed |= changed
        self._shared, self._observed, self._marks = shared, observed, observed.mark()
        self._entries = dict(entries)

    def _put(self, found: Mapping[str, Decided | None], entries: Mapping[str, Any]) -> None:
        active = {pair[0].name: pair for pair in self._decisions.active if pair[0].name not in found}
        waiting, done = {}, {}
        for name, pair in found.items():
            if pair is None:
                continue
            is_recorded = _is_recorded(pair[0], entries.get(name) or {})
            if is_recorded and _is_waiting(*pair):
                waiting[name] = pair
            elif is_recorded and _is_finished(*pair):
                done[name] = pair
            else:
                active[name] = pair
        self._decisions = Decisions(
            active=tuple(active[name] for name in sorted(active)),
            waiting=_updated(self._decisions.waiting, found, waiting),
            done=_updated(self._decisions.done, found, done),
        )

    def _nodes_with_changes(self, entries: Mapping[str, Any], observed: Observed) -> set[str] | None:
        """Return the nodes of which an input has changed; None if it may be any node."""
        if observed != self._observed:
            return None
        touched = observed.touched_since(self._marks)
        if touched is None:
            return None
        nodes, secrets, machines, jobs = touched
        names = set(map(objects.name, nodes))
        names |= _nodes_of(observed, {*map(machine_of, secrets), *map(objects.name, machines)} - {""})
        # Also the node that a Machine had before.
        names.update(map(node_of_machine, machines))
        for label in set(map(label_of, jobs)):
            names.update(name for _, name in observed.nodes.keys_by(_label, label))
        if entries != self._entries:
            known = self._entries
            names |= {name for name in entries.keys() | known.keys() if entries.get(name) != known.get(name)}
        return names


def _updated(
    known: Mapping[str, Decided], found: Mapping[str, Decided | None], new: Mapping[str, Decided]
) -> Mapping[str, Decided]:
    """Return the decisions with the new ones, and without the other ones about those nodes."""
    if not new and known.keys().isdisjoint(found):
        # Most changes are of active nodes, and a thousand may wait or be done.
        return known
    return {**{name: pair for name, pair in known.items() if name not in found}, **new}


def _nodes_of(observed: Observed, machines: Iterable[str]) -> set[str]:
    """Return the nodes of these Machines, and those that name one of them."""
    names: set[str] = set()
    for machine in machines:
        found = _machine(observed, machine)
        names.update(name for _, name in observed.nodes.keys_by(_machine_named_by, machine))
        if found is not None:
            names.add(found.node)
    return names


def _decide(name: str, entries: Mapping[str, Any], observed: Observed, shared: Shared) -> Decided | None:
    """Return None for a node that does not exist, or takes no part."""
    node = observed.nodes.get(name)
    if node is None:
        return None
    is_single, plan = name == shared.single, _machine_plan(name, node, observed)
    if is_single:
        plan = plan.without_hooks()
    takes_part = name in entries or plan.pending or plan.under_way
    if not (is_single or (takes_part and not shared.single)):
        return None
    entry = entries.get(name) or {}
    return decide(
        Inputs(
            node=node,
            state=state_of(entry.get("state") or ""),
            requests=Requests.read(entry),
            machine_plan=plan,
            jobs=jobs_of(label_value(name), observed.jobs, shared),
            shared=shared,
            is_single=is_single,
        )
    )


def _machine_plan(name: str, node: Object, observed: Observed) -> MachinePlan:
    plans = machine_plans(name, observed.secrets, observed.machines)
    return counting(plans, _machine(observed, _machine_named_by(node)), node=name)


def _machine(observed: Observed, name: str) -> Machine | None:
    found = observed.machines.keys_by(objects.name, name)
    return observed.machines.derive_one(Machine.of, found[0]) if found else None


def _machine_named_by(node: Object) -> str:
    """Return the Machine that the Node names; empty if it names none."""
    return objects.annotations_of(node).get(ANNOTATION_MACHINE, "")


def _label(node: Object) -> str:
    """Return the node's name in the labels of Jobs."""
    return label_value(objects.name(node))


def _is_recorded(view: NodeView, entry: Mapping[str, Any]) -> bool:
    """Return True if the entry shows no problem, and the record of the node's requests is written."""
    return entry.keys() <= _PLAIN and view.requests == Requests.read(entry) and not view.may_be_acknowledged


def _is_waiting(view: NodeView, decision: Decision) -> bool:
    """Return True for an idle node that Rancher has not reached."""
    is_unstarted = view.state is None or view.state.group < NodeState.UPGRADE_PAUSED.group
    return decision.state is None and is_unstarted and not (view.jobs or view.old_jobs) and _is_idle(view, decision)


def _is_finished(view: NodeView, decision: Decision) -> bool:
    """Return True for an idle node that is recorded as done."""
    jobs = (*view.jobs.values(), *view.old_jobs.values())
    is_over = all(job.progress is Progress.COMPLETE and not job.repeated for job in jobs)
    return decision.is_done and view.is_upgraded and is_over and _is_idle(view, decision)


def _is_idle(view: NodeView, decision: Decision) -> bool:
    """Return True if the decision changes nothing, and the node neither is in a drain nor has a problem."""
    changes = decision.effects or decision.holds or decision.failure or decision.message or decision.is_forgotten
    hooks = (view.pre_drain, view.post_drain)
    drains = view.drains or view.under_way or any(hook.requested or hook.others for hook in hooks)
    marked = view.cordoned or view.tainted or view.pending_os
    problem = view.cordon_error or view.plan_error or view.machine_problem
    return view.ready and not (changes or drains or marked or problem or view.is_used_up)
