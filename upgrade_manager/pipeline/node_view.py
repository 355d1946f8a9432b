"""What is observed, brought together per node, and what follows from it.

Of a thousand nodes one is upgraded at a time, so nearly all that is known about them is as it was at the last look.
Whatever is worked out from one version of an object is therefore kept beside it in its store, and a node is judged
anew only when something about it is different. Nothing else is remembered: an empty cache gives the same decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from upgrade_manager.api.keys import ANNOTATION_PENDING_OS_IMAGE, LABEL_JOB_TYPE, LABEL_NODE, WITNESS_LABEL, JobType
from upgrade_manager.api.names import label_value
from upgrade_manager.kube import objects
from upgrade_manager.nodes import machine_plan, single_node
from upgrade_manager.nodes.drain import decide
from upgrade_manager.nodes.job_state import JobState
from upgrade_manager.nodes.kubernetes import is_older
from upgrade_manager.nodes.model import Hook, NodeView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.api.spec import UpgradePlanSpec
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.decision import Decision
    from upgrade_manager.pipeline.status import StatusPatch
    from upgrade_manager.resources.owner import Owner

Judged: TypeAlias = "tuple[NodeView, Decision]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The stores that tell about nodes."""

    nodes: Store
    #: Machine-plan Secrets.
    secrets: Store
    machines: Store
    jobs: Store


class Aim(NamedTuple):
    """What all nodes have in common."""

    #: As nodes report them once they run the release.
    release_os: str
    release_kubernetes: str
    #: Names of the Secrets with a question of an earlier upgrade.
    left_over: frozenset[str]


def judged_nodes(
    status: StatusPatch, observed: Observed, *, owner: Owner, spec: UpgradePlanSpec, aim: Aim
) -> list[Judged]:
    """Every node that takes part: it was there when the phase began, or Rancher asks about it all the same.

    On a single-node cluster only that node does: for one that joins meanwhile there is no Rancher who asks.
    """
    single = status["singleNode"]
    paused = frozenset(spec.node_upgrade_option.pause_nodes)
    questions = _by_node(observed.secrets, observed.machines)
    steps = _by_label(observed.jobs, owner)
    result = []
    for card in observed.nodes.derive(_Card):
        question = questions.get(card.name, _NO_QUESTION)
        asked = status.has_node(card.name) or question.is_open
        if card.name == single or (asked and not single):
            known = steps.get(card.label, _NO_STEPS)
            wish = _Wish(card.name in paused, spec.restore_vm)
            basis = _Basis(status.node_state(card.name), question, known, aim, card.name == single, wish)
            result.append(card.judged(basis))
    return result


_NO_HOOK = Hook()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What a machine-plan Secret says."""

    secret: str = ""
    machine: str = ""
    pre_drain: Hook = _NO_HOOK
    post_drain: Hook = _NO_HOOK
    tier: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether Rancher waits for us."""
        return self.pre_drain.open or self.post_drain.open


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """What a Job says."""

    #: The uid of the plan that it belongs to.
    owner: str
    #: As the label has it.
    node: str
    job_type: JobType
    state: JobState


_NO_QUESTION = _Question()
_NO_STEPS: list[_Step] = []


class _Wish(NamedTuple):
    """What the user wants for one node."""

    paused: bool
    restores_vms: bool


@dataclass(frozen=True, slots=True)
class _Basis:
    """What a judgement rests on, beside the Node itself."""

    state: NodeState | None
    question: _Question
    steps: list[_Step]
    aim: Aim
    #: Whether it is the only node.
    is_single: bool
    wish: _Wish


class _Card:
    """What one version of a Node says, and the latest judgement of it."""

    def __init__(self, node: Object) -> None:
        self.name = objects.name(node)
        #: Its name as Jobs carry it.
        self.label = label_value(self.name)
        self._node = node
        self._latest: tuple[_Basis, Judged] | None = None

    def judged(self, basis: _Basis) -> Judged:
        """The same again, as long as it rests on the same."""
        if self._latest is None or self._latest[0] != basis:
            view = self._view(basis)
            judge = single_node.decide if basis.is_single else decide
            self._latest = basis, (view, judge(view, release_os=basis.aim.release_os))
        return self._latest[1]

    def _view(self, basis: _Basis) -> NodeView:
        node, question = self._node, basis.question
        info = objects.status(node).get("nodeInfo") or {}
        return NodeView(
            name=self.name,
            state=basis.state,
            os_image=info.get("osImage", ""),
            ready=objects.is_condition_true(node, "Ready"),
            pending_os=objects.annotations_of(node).get(ANNOTATION_PENDING_OS_IMAGE, ""),
            secret=question.secret,
            pre_drain=question.pre_drain,
            post_drain=question.post_drain,
            jobs={step.job_type: step.state for step in basis.steps},
            behind=is_older(info.get("kubeletVersion", ""), basis.aim.release_kubernetes),
            left_over=question.secret in basis.aim.left_over,
            tier=question.tier,
            paused=basis.wish.paused,
            # A witness runs no VMs.
            restores_vms=basis.wish.restores_vms and WITNESS_LABEL not in objects.labels(node),
        )


def _by_node(secrets: Store, machines: Store) -> Mapping[str, _Question]:
    """Secrets without a Machine, and Machines without a node, are nobody's yet; of two Secrets the one that asks."""
    nodes = dict(machines.derive(_node_of))
    result: dict[str, _Question] = {}
    for question in secrets.derive(_question):
        node = nodes.get(question.machine)
        if node and (node not in result or (question.is_open and not result[node].is_open)):
            result[node] = question
    return result


def _by_label(jobs: Store, owner: Owner) -> Mapping[str, list[_Step]]:
    result: dict[str, list[_Step]] = {}
    for step in _present(jobs.derive(_step)):
        if step.owner == owner.uid:
            result.setdefault(step.node, []).append(step)
    return result


def _present(steps: Iterable[_Step | None]) -> Iterable[_Step]:
    return (step for step in steps if step is not None)


def _node_of(machine: Object) -> tuple[str, str]:
    return objects.name(machine), machine_plan.node_of_machine(machine)


def _question(secret: Object) -> _Question:
    return _Question(
        secret=objects.name(secret),
        machine=machine_plan.machine_of(secret),
        pre_drain=machine_plan.pre_drain(secret),
        post_drain=machine_plan.post_drain(secret),
        tier=machine_plan.tier_of(secret),
    )


def _step(job: Object) -> _Step | None:
    """None for a Job that is no node's, or of a type that we do not know."""
    labels = objects.labels(job)
    if labels.get(LABEL_JOB_TYPE) not in JobType.__members__.values() or LABEL_NODE not in labels:
        return None
    return _Step(
        owner=objects.owner_uid(job),
        node=labels[LABEL_NODE],
        job_type=JobType(labels[LABEL_JOB_TYPE]),
        state=JobState.of(job),
    )
