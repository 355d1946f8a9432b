"""The commands `upgrade-manager pause` and `resume`: names in a plan's pause list, set and removed.

user_commands.py starts them; nodes/sequencing.py decides by the list.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.node_states import NodeState, late_pauses, started_nodes
from upgrade_manager.api.text import name_list
from upgrade_manager.cli.plan_change import change_plan
from upgrade_manager.cli.plans import read_plan
from upgrade_manager.cli.session import CommandError, connected, print_message, run_command
from upgrade_manager.display.view import state_of_plan
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden, NotFound
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from upgrade_manager.cli.session import Session
    from upgrade_manager.cli.user_options import PauseOptions
    from upgrade_manager.kube.objects import Object


def pause(options: PauseOptions) -> int:
    """Add or remove nodes, print what happens to each, and return the exit status."""
    return run_command("pause" if options.pauses else "resume", lambda: _change(options))


async def _change(options: PauseOptions) -> int:
    async with connected(command="pause", kubeconfig=options.kubeconfig, context=options.context) as session:
        plan = await read_plan(session, options.plan)
        await _check(session, plan, options.nodes)
        plan = await change_list(session, plan, options.nodes, pauses=options.pauses)
    lines = paused_lines(plan, options.nodes) if options.pauses else resumed_lines(plan, options.nodes)
    for text, is_late in lines:
        print_message(f"Warning: {text}") if is_late else sys.stdout.write(f"{text}\n")
    return 0


async def change_list(session: Session, plan: Object, nodes: Sequence[str], *, pauses: bool) -> Object:
    """Return the plan with the changed list; what others change meanwhile is kept. Raises CommandError."""
    return await change_plan(session, plan, partial(_changed_list, nodes=nodes, pauses=pauses))


def _changed_list(plan: Object, *, nodes: Sequence[str], pauses: bool) -> Object:
    old = listed(plan)
    new = [*dict.fromkeys([*old, *nodes])] if pauses else [name for name in old if name not in nodes]
    return {"spec": {"nodeUpgradeOption": {"pauseNodes": new}}} if new != old else {}


def listed(plan: Object) -> list[str]:
    """Return the pause list of a plan."""
    return [str(name) for name in objects.items(plan, "spec", "nodeUpgradeOption", "pauseNodes")]


def paused_lines(plan: Object, nodes: Sequence[str]) -> list[tuple[str, bool]]:
    """Return what becomes of each node of the list, and whether its pause comes too late."""
    late, held = late_pauses(objects.status(plan), nodes), _held(plan)
    cordoned = "" if objects.text(plan, "status", "singleNode") else "cordoned and "
    now = f"is {cordoned}paused, and nodes after it wait, until you resume it"
    turn = f"is {cordoned}paused when its turn comes, and nodes after it wait, until you resume it"
    return [(late.get(name) or f"{name} {now if name in held else turn}", name in late) for name in nodes]


def resumed_lines(plan: Object, nodes: Sequence[str]) -> list[tuple[str, bool]]:
    """Return what becomes of each node that is no longer in the list."""
    return [(f"{name} {_resumed(plan, name)}", False) for name in nodes]


def _resumed(plan: Object, node: str) -> str:
    state = started_nodes(objects.status(plan)).get(node)
    if state is not None:
        return "is upgraded already" if state.upgraded else f"is under way ({state}): it was not paused"
    return "is resumed: its upgrade goes on" if node in _held(plan) else "is not paused when its turn comes"


def _held(plan: Object) -> set[str]:
    states = objects.mapping(plan, "status", "nodeUpgradeStatuses")
    return {name for name in states if objects.text(states, name, "state") == NodeState.UPGRADE_PAUSED}


async def _check(session: Session, plan: Object, nodes: Sequence[str]) -> None:
    """Raise CommandError for a plan that has ended, and for names that are not nodes."""
    if (state := state_of_plan(plan)).is_end:
        raise CommandError(f"{objects.name(plan)} has ended ({state}): its nodes can be neither paused nor resumed")
    known = await node_names(session, plan)
    unknown = [name for name in nodes if name not in known and name not in listed(plan)]
    if known and unknown:
        raise CommandError(f"Node {unknown[0]} does not exist. {_nearest(unknown[0], known)}")


def _nearest(name: str, known: Collection[str]) -> str:
    """Return the node that may be meant, else all."""
    found = get_close_matches(name, sorted(known), n=1)
    return f"Did you mean {found[0]}?" if found else f"The nodes are {name_list(sorted(known))}"


async def node_names(session: Session, plan: Object) -> set[str]:
    """Return the names of the cluster's nodes; without the right to list them, those in the plan's status."""
    try:
        listing = await session.read(session.client.list(NODES, metadata_only=True))
    except CommandError as error:
        if not isinstance(error.__cause__, Forbidden | NotFound):
            raise
        return {*objects.mapping(plan, "status", "nodeUpgradeStatuses")}
    return {objects.name(node) for node in listing.items}
