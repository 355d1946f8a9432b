"""The record of a failure: its cause, what is left, and the next steps of a user.

reconciler.py calls it when a phase fails. ../phases/host_ending.py adds what the end of the plan could not undo.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

from upgrade_manager.api.annotations import USER_ANNOTATIONS
from upgrade_manager.api.attempts import retry_command
from upgrade_manager.api.keys import API_VERSION, KIND
from upgrade_manager.api.names import MAX_NAME
from upgrade_manager.api.next_steps import MAX_COMMAND
from upgrade_manager.api.node_states import upgraded_names
from upgrade_manager.api.phases import PhaseName, failed_phase
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.ending import advice, held_nodes, passing_on, payload, settlement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.ending.held_nodes import Frozen
    from upgrade_manager.pipeline.outcome import Failed

_CORRECT = "Correct the cause, then retry"
_ANOTHER = "Create a new UpgradePlan"
#: The beginning of advice that follows the sentence with the correction, and what stands for it without the cause.
_THEN, _CORRECT_IT = "Then ", "Correct the cause, "
#: The parts of the cluster that are as they were after a failure in a phase.
_UNCHANGED = {
    PhaseName.IMAGE_PRELOAD: "This plan has changed no component and no node; images that nodes have loaded stay there",
    PhaseName.CLUSTER_UPGRADE: "This plan has upgraded no node. Components may run the new release already, and a "
    "retry upgrades the others",
}
#: The phases in which nodes are upgraded.
_ON_NODES = frozenset({PhaseName.NODE_UPGRADE, PhaseName.IMAGE_CLEANUP})
#: The number at the end of a plan's name.
_NUMBER = re.compile(r"-([0-9]{1,4})\Z")


async def record(ctx: ReconcileContext, failed: Failed) -> None:
    """End the upgrade in the status, which the caller writes."""
    frozen = await held_nodes.find(ctx)
    unrecorded = [Remedy(text) for text in settlement.name_unrecorded(ctx)]
    left = [
        *(held_nodes.steps(frozen) if frozen else ()),
        *await passing_on.owed(ctx),
        *unrecorded,
        *await advice.still_changed(ctx, when=advice.AFTER_SUCCESS),
    ]
    kept = [Remedy(text) for text in filter(None, [await payload.room(ctx)])]
    is_final = failed.is_final or bool(failed.immutable)
    todo = Remedy(_todo(ctx, failed, frozen), command="" if is_final else retry_command(ctx.owner.name))
    steps = [todo, *_unchanged(ctx), *left, *kept, *_log(failed), _by_kubectl(ctx)]
    if is_final:
        steps[-1] = _new_plan(ctx, failed.immutable)
    if frozen is not None:
        steps.append(held_nodes.WITHOUT_MANAGER)
    what = ". ".join(map(str, (*kept, todo)))
    ctx.status.fail(
        failed.message,
        cause=failed.cause,
        todo=what,
        node=failed.node,
        cordoned=_cordoned(frozen),
        steps=steps,
        is_refusal=failed.is_refusal,
    )


def _cordoned(frozen: Frozen | None) -> list[str]:
    return [node for node, _ in frozen.held] if frozen else []


def _todo(ctx: ReconcileContext, failed: Failed, frozen: Frozen | None) -> str:
    """Return the sentence with what to do, and what not to do."""
    todo, cordoned = failed.advice or (_ANOTHER if failed.immutable else _CORRECT), _cordoned(frozen)
    if todo.startswith(_THEN):
        # The condition Degraded alone has the cause before it, with the correction.
        todo = f"{_CORRECT_IT}{todo[:1].lower()}{todo[1:]}"
    if cordoned:
        lead = f"Do not uncordon {name_list(cordoned)}"
    elif frozen is not None:
        lead = f"Do not remove the drain hooks that hold {name_list(frozen.nodes)}"
    elif _failed_phase(ctx) not in {*_UNCHANGED, *_ON_NODES}:
        lead = "Nothing was changed yet"
    else:
        return todo
    return f"{lead}; {todo[:1].lower()}{todo[1:]}"


def _failed_phase(ctx: ReconcileContext) -> PhaseName:
    return failed_phase(ctx.status.recorded_phases())


def _unchanged(ctx: ReconcileContext) -> Iterator[Remedy]:
    """Yield what is as it was, or keeps the new release."""
    phase = _failed_phase(ctx)
    if phase in _UNCHANGED:
        yield Remedy(_UNCHANGED[phase])
    if phase not in _ON_NODES:
        # The first step says of the others that nothing was changed.
        return
    upgraded = sorted(upgraded_names(ctx.status.fields))
    if upgraded:
        yield Remedy(f"Upgraded nodes keep the new release: {name_list(upgraded)}")


def _log(failed: Failed) -> Iterator[Remedy]:
    if failed.log:
        yield Remedy("The log of the failed Job has the cause", command=failed.log)


def _by_kubectl(ctx: ReconcileContext) -> Remedy:
    """Return the request of the next attempt without this program; the API server refuses it once it is made."""
    patch = json.dumps({"spec": {"attempt": ctx.owner.attempt + 1}}, separators=(",", ":"))
    command = f"kubectl patch {UPGRADE_PLANS.name} {ctx.owner.name} --type=merge -p {shlex.quote(patch)}"
    return Remedy("Or retry with kubectl", command=command)


def _new_plan(ctx: ReconcileContext, field: str) -> Remedy:
    """Return the command that creates a plan with the same spec but for that field; the webhook checks it."""
    kept = {key: value for key, value in objects.annotations_of(ctx.raw).items() if key in USER_ANNOTATIONS}
    metadata = {"name": _following(ctx.owner.name), **({"annotations": kept} if kept else {})}
    plan = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": ctx.plan.raw_spec}
    # The echo of some shells interprets backslashes.
    manifest = shlex.quote(json.dumps(plan, separators=(",", ":")))
    text = f"{f'A retry cannot change {field}' if field else 'No retry can go on'}: create a new UpgradePlan"
    command = f"printf %s {manifest} | kubectl create -f -"
    if len(command) > MAX_COMMAND:
        show = f"kubectl get {UPGRADE_PLANS.name} {ctx.owner.name} -o yaml"
        return Remedy(f"{text}. This command shows the spec of this one", command=show)
    creates = f"Set another {field} in this command, which creates one" if field else "This command creates one"
    return Remedy(f"{text}. {creates}", command=command)


def _following(name: str) -> str:
    """Return the plan's name with the next number."""
    found = _NUMBER.search(name)
    stem, number = (name[: found.start()], int(found[1])) if found else (name, 1)
    return f"{stem[: MAX_NAME - 6].rstrip('-.')}-{number + 1}"
