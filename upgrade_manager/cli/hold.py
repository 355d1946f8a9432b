"""The commands `upgrade-manager pause PLAN` and `continue PLAN [NODE]`: they pause and continue an upgrade.

user_commands.py starts them, and retry.py shows what pauses a plan; pipeline/pause.py holds the plan, and
pipeline/continuations.py resumes a node.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import is_requested, requested_attempt, retry_command
from upgrade_manager.api.conditions import PAUSE_AFTER, PAUSED
from upgrade_manager.api.holds import continue_command, entry_of, held_nodes, next_point, read_entries
from upgrade_manager.api.keys import ANNOTATION_CONTINUE
from upgrade_manager.api.node_states import upgraded_nodes
from upgrade_manager.api.phases import FAILED, PHASES, phase_of
from upgrade_manager.api.text import name_list
from upgrade_manager.cli.plan_change import change_plan
from upgrade_manager.cli.plans import read_plan
from upgrade_manager.cli.session import CommandError, connected, run_command
from upgrade_manager.display.view import state_of_plan
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.cli.session import Session
    from upgrade_manager.cli.user_options import ContinueOptions, HoldOptions
    from upgrade_manager.kube.objects import Object

_PAUSED, _PAUSE_AFTER = "spec.paused", "spec.nodeUpgradeOption.pauseAfter"
#: The changes of the spec that remove the fields.
_WITHOUT: dict[str, Object] = {_PAUSED: {"paused": None}, _PAUSE_AFTER: {"nodeUpgradeOption": {"pauseAfter": None}}}


def hold(options: HoldOptions) -> int:
    """Pause the plan, print the place of the hold, and return the exit status."""
    return run_command("pause", lambda: _hold(options))


def resume(options: ContinueOptions) -> int:
    """Continue the plan, print the effect, and return the exit status."""
    return run_command("continue", lambda: _continue(options))


async def _hold(options: HoldOptions) -> int:
    async with connected(command="pause", kubeconfig=options.kubeconfig, context=options.context) as session:
        plan = await change(session, options.plan, pausing)
    sys.stdout.write(f"{held_line(plan)}\n")
    return 0


async def _continue(options: ContinueOptions) -> int:
    async with connected(command="continue", kubeconfig=options.kubeconfig, context=options.context) as session:
        decide = partial(letting_past, node=options.node) if options.node else continuing
        plan = await change(session, options.plan, decide)
    sys.stdout.write(f"{options.node} goes on\n" if options.node else f"{continued_line(plan)}\n")
    return 0


def pausing(plan: Object) -> Object:
    """Return the change that pauses the plan; none if it is paused. Raises CommandError."""
    if (state := state_of_plan(plan)).is_end:
        raise CommandError(f"{objects.name(plan)} has ended ({state}): nothing of it is left to hold")
    if phase_of(objects.text(plan, "status", "currentPhase")) is PHASES[-1]:
        raise CommandError(f"{objects.name(plan)} is in its last phase, {PHASES[-1]}: nothing of it is left to hold")
    return {} if objects.is_true(plan, "spec", "paused") else {"spec": {"paused": True}}


def continuing(plan: Object) -> Object:
    """Return the change that continues the plan. Raises CommandError for a plan that does not hold."""
    field = pausing_field(plan)
    if not field:
        held, command = held_node(plan)
        run = f"; {held} holds: {command}" if held else ""
        raise CommandError(f"{objects.name(plan)} is not paused{run}")
    return {"spec": _WITHOUT[field]}


def pausing_field(plan: Object) -> str:
    """Return the field that pauses the plan and that `continue` removes; empty for a plan that no such field pauses."""
    if objects.is_true(plan, "spec", "paused"):
        return _PAUSED
    return _PAUSE_AFTER if objects.text(objects.condition(plan, PAUSED), "reason") == PAUSE_AFTER else ""


def held_node(plan: Object) -> tuple[str, str]:
    """Return a node that holds before a step, and the command that continues it; empty texts without one."""
    if _has_failed(plan):
        return "", ""
    node = next(iter(held_nodes(objects.mapping(plan, "status"))), "")
    return (node, continue_command(objects.name(plan), node)) if node else ("", "")


def letting_past(plan: Object, *, node: str) -> Object:
    """Return the change that continues the node. Raises CommandError for a node that does not hold."""
    if _has_failed(plan):
        way = "" if is_requested(plan) else f". To request it: {retry_command(objects.name(plan))}"
        raise CommandError(f"{objects.name(plan)} has failed: {node} goes on in its next attempt{way}")
    held = held_nodes(objects.mapping(plan, "status"))
    if node not in held:
        others = f"; what holds is {name_list(sorted(held))}" if held else "; no node holds"
        raise CommandError(f"{node} does not hold before a step{others}")
    known = read_entries(objects.annotations_of(plan).get(ANNOTATION_CONTINUE, ""))
    added = list(dict.fromkeys([*known, entry_of(node, held[node])]))
    return {} if added == known else {"metadata": {"annotations": {ANNOTATION_CONTINUE: ",".join(added)}}}


def _has_failed(plan: Object) -> bool:
    return objects.text(plan, "status", "currentPhase") == FAILED


async def change(session: Session, name: str, decide: Callable[[Object], Object]) -> Object:
    """Change the plan as it is at the write, which another user may have changed meanwhile; return it."""
    return await change_plan(session, await read_plan(session, name), decide)


def held_line(plan: Object) -> str:
    """Return the place at which the plan holds next, and the command that continues it."""
    name = objects.name(plan)
    if is_requested(plan):
        return f"{_attempt(plan)}, which has not begun, waits. To begin it: {continue_command(name)}"
    status = objects.mapping(plan, "status")
    held = objects.text(status, "holds")
    where = f"{held}, and nothing of it runs" if held else f"{next_point(status)}; what has begun is finished first"
    return f"{name} holds {where}. To continue: {continue_command(name)}"


def continued_line(plan: Object) -> str:
    """Return the line of a plan that was continued; one that has failed continues in its next attempt."""
    name = objects.name(plan)
    if is_requested(plan):
        return f"{_attempt(plan)} begins, unless something else holds the cluster"
    if _has_failed(plan):
        return f"{name} has failed, and is not paused any more. To go on: {retry_command(name)}"
    return _held_still(plan) or f"{name} goes on"


def _held_still(plan: Object) -> str:
    """Return the next pause of a plan that was continued, with the command that ends it; empty without one."""
    name, status = objects.name(plan), objects.mapping(plan, "status")
    node, command = held_node(plan)
    if node:
        return f"{name} is not paused any more; {node} holds: {command}"
    after = objects.number(plan, "spec", "nodeUpgradeOption", "pauseAfter")
    if after and upgraded_nodes(status) >= after:
        return f"{name} is not paused any more, and holds by pauseAfter. To continue: {continue_command(name)}"
    return ""


def _attempt(plan: Object) -> str:
    return f"Attempt {requested_attempt(objects.mapping(plan, 'spec'))} of {objects.name(plan)}"
