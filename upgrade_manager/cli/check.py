"""The command `upgrade-manager check`, in the manner of cmctl's `check api`: the state of the installation.

user_commands.py starts it; installation/catalogue.py has the checks.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

from upgrade_manager import __version__
from upgrade_manager.api.text import bounded_line
from upgrade_manager.cli.check_table import Entry, table_lines, terminal_width
from upgrade_manager.cli.installation.catalogue import check_all
from upgrade_manager.cli.installation.cluster import Cluster
from upgrade_manager.cli.installation.row import Outcome
from upgrade_manager.cli.session import connected, run_command
from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.cli.installation.row import Row
    from upgrade_manager.cli.session import Session
    from upgrade_manager.cli.user_options import CheckOptions

#: Seconds between two runs of `--wait`.
INTERVAL = 2.0


def check(options: CheckOptions) -> int:
    """Check the installation, print the results, and return the exit status."""
    return run_command("check", lambda: _check(options))


async def _check(options: CheckOptions) -> int:
    async with connected(command="check", kubeconfig=options.kubeconfig, context=options.context) as session:
        # The first request shows whether there is a cluster at all.
        await session.read(session.client.raw("GET", "/version"))
        cluster = Cluster(client=session.client, now=session.now, version=__version__)
        rows = await check_until(cluster, options.wait)
    sys.stdout.write(_json(session, rows) if options.output == "json" else _table(session, rows))
    return int(not has_passed(rows))


async def check_until(cluster: Cluster, seconds: float) -> list[Row]:
    """Run the checks until none fails, or for so long; at least once."""
    end = loop_time() + seconds
    rows = await check_all(cluster)
    while not has_passed(rows) and loop_time() + INTERVAL <= end:
        await asyncio.sleep(INTERVAL)
        rows = await check_all(cluster)
    return rows


def has_passed(rows: Sequence[Row]) -> bool:
    """Return True if no check failed."""
    return all(row.outcome is not Outcome.FAILED for row in rows)


def _table(session: Session, rows: Sequence[Row]) -> str:
    lines = [f"API server {session.server}, upgrade-manager {__version__}", ""]
    lines += table_lines([_entry(row) for row in rows], width=terminal_width())
    failed = sum(row.outcome is Outcome.FAILED for row in rows)
    lines += ["", f"{failed} of {len(rows)} checks failed." if failed else "No check failed."]
    return "\n".join(lines) + "\n"


def _entry(row: Row) -> Entry:
    reason = bounded_line(row.reason)
    remedies = [[f"# {row.name}: {reason}", *row.commands]] if row.commands else []
    return Entry(name=row.name, outcome=row.outcome, details=[reason], remedies=remedies)


def _json(session: Session, rows: Sequence[Row]) -> str:
    checks = [
        {"name": row.name, "outcome": row.outcome, "reason": bounded_line(row.reason), "commands": list(row.commands)}
        for row in rows
    ]
    head = {"server": session.server, "version": __version__, "passed": has_passed(rows)}
    return json.dumps({**head, "checks": checks}, indent=2) + "\n"
