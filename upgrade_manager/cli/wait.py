"""The command `upgrade-manager wait`: for scripts, which read how the upgrade ended from the exit status.

user_commands.py starts it. exit_status.py has the statuses.
"""

from __future__ import annotations

import asyncio
import random
import sys
from typing import TYPE_CHECKING

from upgrade_manager.cli.exit_status import exit_status
from upgrade_manager.cli.lease_watch import LeaseWatch
from upgrade_manager.cli.plans import events_of, read_optional, read_plan
from upgrade_manager.cli.session import CommandError, connected, run_command
from upgrade_manager.cli.status_watch import PlanWatch, time_limit
from upgrade_manager.display.expectation import UNKNOWN_PACE
from upgrade_manager.display.screen import Lines
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.cli.user_options import WaitOptions


def wait(options: WaitOptions) -> int:
    """Wait for the end of the upgrade, write each change, and return the exit status.

    The removal of its objects may go on.
    """
    return run_command("wait", lambda: _wait(options))


async def _wait(options: WaitOptions) -> int:
    async with connected(command="wait", kubeconfig=options.kubeconfig, context=options.context) as session:
        plan = await read_plan(session, options.plan)
        lease = LeaseWatch(session.client, now=session.now)
        (events, _), _ = await asyncio.gather(read_optional(session, events_of(plan)), lease.read())
        watch = PlanWatch(
            session.client, plan, events, pace=UNKNOWN_PACE, lease=lease, now=session.now, random=random.Random()
        )
        async with time_limit(watch, name=objects.name(plan), seconds=options.timeout):
            is_left = await watch.follow(
                Lines(_write), until=lambda view: view.state.is_end or (options.fail_on_stall and view.is_stalled)
            )
        if not is_left:
            raise CommandError(f"{objects.name(plan)} was deleted")
        return exit_status(watch.view())


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    # A script's log shows a line when it is written.
    sys.stdout.flush()
