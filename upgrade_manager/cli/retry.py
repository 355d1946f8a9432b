"""The command `upgrade-manager retry`: requests the next attempt of a plan that has failed.

user_commands.py starts it; pipeline/attempt.py begins the attempt.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from upgrade_manager.api.attempts import attempt_of, is_requested
from upgrade_manager.api.conditions import AVAILABLE, PAUSED
from upgrade_manager.api.holds import continue_command
from upgrade_manager.api.in_progress import taken_over
from upgrade_manager.api.node_states import state_of
from upgrade_manager.api.phases import FAILED, PHASES, PhaseName, failed_phase, phase_of, recorded_phases
from upgrade_manager.api.text import name_list
from upgrade_manager.cli.hold import held_node, pausing_field
from upgrade_manager.cli.plan_change import change_plan
from upgrade_manager.cli.plans import read_plan
from upgrade_manager.cli.session import CommandError, connected, print_message, run_command
from upgrade_manager.display.view import state_of_plan
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.api.node_states import NodeState
    from upgrade_manager.cli.user_options import RetryOptions
    from upgrade_manager.kube.objects import Object

#: The result of each phase, which no attempt repeats.
_DONE = {
    PhaseName.ISO_DOWNLOAD: "the download of the ISO",
    PhaseName.IMAGE_PRELOAD: "the preload of images",
    PhaseName.CLUSTER_UPGRADE: "the upgrade of the components",
}
#: The work of the phase that failed.
_REPEATED = {
    PhaseName.INITIALIZE: "the checks",
    PhaseName.ISO_DOWNLOAD: "the download of the ISO",
    PhaseName.IMAGE_PRELOAD: "the preload of images on nodes that have not completed it, and the node survey",
    PhaseName.CLUSTER_UPGRADE: "the Job that upgrades the components",
    PhaseName.NODE_UPGRADE: "the failed Job of {}",
    PhaseName.IMAGE_CLEANUP: "the removal of images on nodes that have not completed it",
}


def retry(options: RetryOptions) -> int:
    """Request the attempt, print what it does, and return the exit status."""
    return run_command("retry", lambda: _retry(options))


async def _retry(options: RetryOptions) -> int:
    async with connected(
        command="retry", kubeconfig=options.kubeconfig, context=options.context, show_warning=_warn
    ) as session:
        plan = await change_plan(session, await read_plan(session, options.plan), requesting)
    sys.stdout.write("".join(f"{line}\n" for line in lines_of(plan)))
    return 0


def _warn(text: str) -> None:
    print_message(f"Warning: {text}")


def requesting(plan: Object) -> Object:
    """Return the change that raises the attempt by one; none if it is raised. Raises CommandError.

    The API server and the webhook check it.
    """
    name = objects.name(plan)
    if objects.text(plan, "status", "currentPhase") != FAILED:
        state = state_of_plan(plan)
        way = "" if state.is_end or objects.is_deleting(plan) else _way_on(plan)
        recorded = "paused" if objects.is_condition_true(plan, PAUSED) else f"{state}, and is to be paused"
        shown = recorded if way else state
        raise CommandError(f"{name} is {shown}: only a plan that has failed has a next attempt{way or _holder(plan)}")
    if objects.is_deleting(plan):
        raise CommandError(f"{name} is being deleted")
    if why := taken_over(objects.status(plan)):
        raise CommandError(f"{why}. Create a new UpgradePlan")
    return {} if is_requested(plan) else {"spec": {"attempt": attempt_of(objects.status(plan)) + 1}}


def _way_on(plan: Object) -> str:
    """Return the sentence with what lets a plan go on that is paused, or is to be; empty for another plan."""
    if not (objects.is_condition_true(plan, PAUSED) or _is_to_be_paused(plan)):
        return ""
    if field := pausing_field(plan):
        return f". Remove {field}: {continue_command(objects.name(plan))}"
    node, command = held_node(plan)
    return f". Let {node} go on: {command}" if node else ""


def _is_to_be_paused(plan: Object) -> bool:
    """Return True until the manager has recorded a pause; a queued plan, and one in its last phase, does not hold."""
    phase = phase_of(objects.text(plan, "status", "currentPhase"))
    return objects.is_true(plan, "spec", "paused") and phase not in {None, PHASES[-1]}


def _holder(plan: Object) -> str:
    """Return the sentence with what a queued plan waits for; empty for another plan."""
    message = objects.text(objects.condition(plan, AVAILABLE), "message")
    return f". It is in the queue: {message}" if objects.text(plan, "status", "queuedSince") and message else ""


def lines_of(plan: Object) -> Iterator[str]:
    """Yield what the next attempt does, and what it repeats and does not repeat."""
    status, name = objects.status(plan), objects.name(plan)
    recorded = recorded_phases(status)
    phase = failed_phase(recorded)
    states = _states(status)
    upgraded = [node for node, state in states.items() if state is not None and state.upgraded]
    attempt = f"Attempt {attempt_of(status) + 1} of {name}"
    if objects.is_true(plan, "spec", "paused"):
        yield f"{attempt} waits, because spec.paused is true. To begin it: {continue_command(name)}"
        attempt = "It then"
    yield f"{attempt} goes on with phase {phase}"
    kept = [text for one, text in _DONE.items() if one.completed in recorded]
    if upgraded:
        kept.append(f"the upgrade of {name_list(upgraded)}")
    if kept:
        yield f"Not repeated: {', '.join(kept)}"
    if phase.active in recorded and phase in _REPEATED:
        failed = [node for node, state in states.items() if state is not None and state.failed]
        yield f"Repeated: {_REPEATED[phase].format(name_list(failed) or 'the node that failed')}"
    left = [node for node, state in states.items() if node not in upgraded and not (state is not None and state.failed)]
    if left and PhaseName.NODE_UPGRADE.active in recorded:
        yield f"Then: {name_list(left)}"
    yield f"Watch it: upgrade-manager status {name} --watch"


def _states(status: Object) -> dict[str, NodeState | None]:
    """Return the state of each node, in the order of their numbers."""
    nodes = objects.mapping(status, "nodeUpgradeStatuses")
    names = sorted(nodes, key=lambda one: (len(one), one))
    return {name: state_of(objects.text(nodes, name, "state")) for name in names}
