"""The command `upgrade-manager remedies`: the lines that end what holds an upgrade up, to copy or to pipe.

user_commands.py starts it; display/remedies.py has the lines.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from upgrade_manager.cli.plans import read_plan
from upgrade_manager.cli.session import connected, print_message, run_command
from upgrade_manager.display.document import plain
from upgrade_manager.display.remedies import remedy_lines
from upgrade_manager.display.view import build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.cli.user_options import RemediesOptions
    from upgrade_manager.display.model import View


def remedies(options: RemediesOptions) -> int:
    """Print the remedies and return the exit status."""
    return run_command("remedies", lambda: _remedies(options))


async def _remedies(options: RemediesOptions) -> int:
    async with connected(command="remedies", kubeconfig=options.kubeconfig, context=options.context) as session:
        plan = await read_plan(session, options.plan)
        view = build(plan, [], now=session.now())
        if options.output == "json":
            sys.stdout.write(to_json(view))
        else:
            sys.stdout.write("".join(f"{line}\n" for line in lines(view)))
            if not (view.blockers or view.next_steps):
                print_message(f"{view.plan} ({view.status}): nothing holds it up")
        return 0


def lines(view: View) -> Iterator[str]:
    """Yield the lines of each blocker below its message, and the next steps after the end."""
    is_first = True
    for row in view.blockers:
        if not is_first:
            yield ""
        yield f"# {row.reason}: {row.message}"
        yield from remedy_lines(row.remedies)
        is_first = False
    yield from remedy_lines(view.next_steps)


def to_json(view: View) -> str:
    """Return the blockers, and the next steps after the end, as JSON."""
    found = {"plan": view.plan, "blockers": plain(view.blockers), "nextSteps": plain(view.next_steps)}
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
