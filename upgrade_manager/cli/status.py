"""The command `upgrade-manager status`: how an upgrade proceeds, once or until it has ended.

user_commands.py starts it; status_watch.py follows the plan, display shows it.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from upgrade_manager.api.keys import KIND
from upgrade_manager.cli.bundles import contents
from upgrade_manager.cli.bundles.reader import read_bundle
from upgrade_manager.cli.exit_status import ExitStatus, exit_status
from upgrade_manager.cli.lease_watch import LeaseWatch
from upgrade_manager.cli.plans import choose, events_of, read_history, read_optional, read_pace, read_plans
from upgrade_manager.cli.session import CommandError, connected, print_message, run_command
from upgrade_manager.cli.status_watch import PlanWatch, time_limit
from upgrade_manager.display.document import to_json, to_yaml
from upgrade_manager.display.history import is_complete, remember
from upgrade_manager.display.screen import Documents, Report, Terminal
from upgrade_manager.display.view import build
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.cli.session import Session
    from upgrade_manager.cli.user_options import StatusOptions
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.objects import Object

#: Columns of tables in a file or a pipe.
FILE_WIDTH = 200


def status(options: StatusOptions) -> int:
    """Print the status of the plan and return the exit status."""
    return run_command("status", lambda: _of_bundle(options) if options.bundle else _status(options))


async def _of_bundle(options: StatusOptions) -> int:
    return show_bundle(options)


def show_bundle(options: StatusOptions) -> int:
    """Show what `show` would have shown when the bundle was written."""
    found = read_bundle(options.bundle, plan=options.plan)
    events = shown_events(found.plan, found.history, found.events, found.refusal(contents.EVENTS))
    view = build(found.plan, events, now=found.now, pace=found.pace, lease=found.lease)
    screen_of(options.output, watch=False).show(view)
    return exit_status(view) if options.exit_code else ExitStatus.SUCCEEDED


def shown_events(plan: Object, history: Mapping[str, object], events: list[Object], refusal: str) -> list[Object]:
    """Return the events of a plan, after its end those of its history; say why there are none."""
    if is_complete(plan, history):
        return remember(plan, history, events, ()).events
    if refusal:
        print_message(f"warnings are not shown: {refusal}")
    return events


async def _status(options: StatusOptions) -> int:
    async with connected(command="status", kubeconfig=options.kubeconfig, context=options.context) as session:
        return await show(session, options)


async def show(session: Session, options: StatusOptions) -> int:
    """Show the plan once, or until it has ended, and return the exit status."""
    plans = await read_plans(session, options.plan)
    plan = choose(session, plans, options.plan)
    lease = LeaseWatch(session.client, now=session.now)
    (events, refusal), (history, _), pace, _ = await asyncio.gather(
        read_optional(session, events_of(plan)),
        read_history(session, plan),
        read_pace(session, plan, plans, options.plan),
        lease.read(),
    )
    events = shown_events(plan, history, events, refusal)
    screen = screen_of(options.output, watch=options.watch)
    watch = PlanWatch(session.client, plan, events, pace=pace, lease=lease, now=session.now, random=random.Random())
    if options.watch:
        async with time_limit(watch, name=objects.name(plan), seconds=options.timeout):
            await follow(watch, screen, name=objects.name(plan), fail_on_stall=options.fail_on_stall)
    else:
        screen.show(watch.view())
    return exit_status(watch.view()) if options.exit_code else ExitStatus.SUCCEEDED


async def follow(watch: PlanWatch, screen: Screen, *, name: str, fail_on_stall: bool = False) -> None:
    """Show changes until the plan has ended; Ctrl-C ends that well, and restores the terminal, as SIGTERM does.

    With `fail_on_stall` also until something holds it up.
    """
    received: list[signal.Signals] = []
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # in a coroutine

    def stop(number: signal.Signals) -> None:
        # A second Ctrl-C would interrupt the end.
        if number not in received:
            received.append(number)
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        with screen:
            is_left = await watch.follow(screen, until=lambda view: fail_on_stall and view.is_stalled)
    except asyncio.CancelledError:
        if signal.SIGINT not in received:
            raise
        task.uncancel()
        return
    if not is_left:
        raise CommandError(f"{KIND} {name} was deleted")


def screen_of(output: str, *, watch: bool) -> Screen:
    """Return the screen for standard output."""
    for name in ("COLUMNS", "LINES"):
        # A terminal without a size sets 0, at which nothing would be printed.
        if os.environ.get(name, "").strip("0") == "":
            os.environ.pop(name, None)
    console = Console(highlight=False, emoji=False, markup=False)
    if output != "table":
        form = to_json if output == "json" else to_yaml
        return Documents(partial(console.out, highlight=False, end=""), form=form, show_message=print_message)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = FILE_WIDTH
    redraws = watch and console.is_terminal and not console.is_dumb_terminal
    return Terminal(console) if redraws else Report(console)
