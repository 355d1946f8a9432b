"""The command `upgrade-manager report`: a page about an upgrade, for those who were not there.

user_commands.py starts it; display/report.py and display/page.py make the page.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from upgrade_manager.cli.lease_watch import LeaseWatch
from upgrade_manager.cli.plans import choose, events_of, read_history, read_optional, read_pace, read_plans
from upgrade_manager.cli.session import CommandError, connected, print_message, run_command
from upgrade_manager.display import page
from upgrade_manager.display import report as reports
from upgrade_manager.display.history import is_complete
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from upgrade_manager.cli.user_options import ReportOptions

STANDARD_OUTPUT = "-"
_EVENTS, _VERSIONS, _HISTORY = "Events and the steps of nodes", "Versions of nodes", "Events that have expired"


def report(options: ReportOptions) -> int:
    """Write the page and return the exit status."""
    return run_command("report", lambda: _report(options))


async def _report(options: ReportOptions) -> int:
    async with connected(command="report", kubeconfig=options.kubeconfig, context=options.context) as session:
        plans = await read_plans(session, options.plan)
        plan = choose(session, plans, options.plan)
        # Users may be allowed to read plans only.
        lease = LeaseWatch(session.client, now=session.now)
        (events, no_events), (nodes, no_nodes), (history, no_history), pace, _ = await asyncio.gather(
            read_optional(session, events_of(plan)),
            read_optional(session, Selection(resource=NODES)),
            read_history(session, plan),
            read_pace(session, plan, plans, options.plan),
            lease.read(),
        )
    refused = {} if is_complete(plan, history) else {_EVENTS: no_events, _VERSIONS: no_nodes, _HISTORY: no_history}
    gaps = [f"{what} are not shown: {reason}" for what, reason in refused.items() if reason]
    for gap in gaps:
        print_message(gap)
    now = SystemClock().now()
    shown = reports.report(plan, events, nodes, gaps, now=now, pace=pace, lease=lease.reading, history=history)
    write(options.output, page.to_html(shown))
    return 0


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
