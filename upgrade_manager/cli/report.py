"""The command `upgrade-manager report`: a page about an upgrade, for those who were not there.

user_commands.py starts it; display/report.py and display/page.py make the page.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from upgrade_manager.cli.bundles import contents
from upgrade_manager.cli.bundles.archive import HISTORY
from upgrade_manager.cli.bundles.reader import read_bundle
from upgrade_manager.cli.lease_watch import LeaseWatch
from upgrade_manager.cli.plans import choose, events_of, read_history, read_optional, read_pace, read_plans
from upgrade_manager.cli.session import CommandError, connected, print_message, run_command
from upgrade_manager.display import page
from upgrade_manager.display import report as reports
from upgrade_manager.display.history import is_complete
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.cli.session import Session
    from upgrade_manager.cli.user_options import ReportOptions
    from upgrade_manager.kube.objects import Object

STANDARD_OUTPUT = "-"


def report(options: ReportOptions) -> int:
    """Write the page and return the exit status."""
    return run_command("report", lambda: _of_bundle(options) if options.bundle else _report(options))


async def _of_bundle(options: ReportOptions) -> int:
    write(options.output, of_bundle(options.bundle, options.plan))
    return 0


def of_bundle(file: str, plan: str) -> str:
    """Return the page that `make` would have returned when the bundle was written."""
    found = read_bundle(file, plan=plan)
    paths = (contents.EVENTS, contents.NODES, HISTORY)
    gaps = _gaps(found.plan, found.history, *map(found.refusal, paths))
    shown = reports.report(
        found.plan,
        found.events,
        found.nodes,
        gaps,
        now=found.now,
        pace=found.pace,
        lease=found.lease,
        history=found.history,
    )
    return page.to_html(shown)


async def _report(options: ReportOptions) -> int:
    async with connected(command="report", kubeconfig=options.kubeconfig, context=options.context) as session:
        text = await make(session, options.plan)
    write(options.output, text)
    return 0


async def make(session: Session, name: str) -> str:
    """Return the page of the plan."""
    plans = await read_plans(session, name)
    plan = choose(session, plans, name)
    # Users may be allowed to read plans only.
    lease = LeaseWatch(session.client, now=session.now)
    (events, no_events), (nodes, no_nodes), (history, no_history), pace, _ = await asyncio.gather(
        read_optional(session, events_of(plan)),
        read_optional(session, Selection(resource=NODES)),
        read_history(session, plan),
        read_pace(session, plan, plans, name),
        lease.read(),
    )
    gaps = _gaps(plan, history, no_events, no_nodes, no_history)
    now = session.now()
    shown = reports.report(plan, events, nodes, gaps, now=now, pace=pace, lease=lease.reading, history=history)
    return page.to_html(shown)


def _gaps(plan: Object, history: Mapping[str, object], no_events: str, no_nodes: str, no_history: str) -> list[str]:
    """Return what is not shown, and why, and say so; nothing if the history has it all."""
    if is_complete(plan, history):
        return []
    refused = {
        "Events and the steps of nodes": no_events,
        "Versions of nodes": no_nodes,
        "Events that have expired": no_history,
    }
    gaps = [f"{what} are not shown: {reason}" for what, reason in refused.items() if reason]
    for gap in gaps:
        print_message(gap)
    return gaps


def write(output: str, text: str) -> None:
    """Write the page to a file or standard output. Raises CommandError."""
    if output == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandError(f"{output} cannot be written: {reason}. Use -o with a file that you may write") from error
