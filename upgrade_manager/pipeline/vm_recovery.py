"""The condition VMRecoveryOff of a plan that waits for long, for which plan_queue.py and pause.py call it.

From v1.9 on, Harvester recovers no VM of a node that is down while any plan is unfinished, whatever it waits for
(its node-down controller, v1.9.0-rc6).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.conditions import VM_RECOVERY_OFF, find_condition
from upgrade_manager.api.keys import SETTING_SERVER_VERSION
from upgrade_manager.facts import versions
from upgrade_manager.kube.resources import SETTINGS
from upgrade_manager.release.version import InvalidVersion, Version

if TYPE_CHECKING:
    from datetime import datetime

    from upgrade_manager.pipeline.context import ReconcileContext

#: The time after which a wait is so long that it is said.
LONG = timedelta(hours=1)
#: The first release that does so, without its tags: a candidate of v1.9.0 does it, too.
_FIRST = (1, 9)


async def report(ctx: ReconcileContext, *, since: datetime, todo: str) -> float | None:
    """Set the condition once the plan waits for long; return the seconds until then, None once that is decided.

    `todo` is the sentence with what ends the wait.
    """
    left = (since + LONG - ctx.now()).total_seconds()
    if left > 0:
        return left
    if find_condition(ctx.status["conditions"], VM_RECOVERY_OFF) is None:
        running = await ctx.informers.server_version.get(SETTING_SERVER_VERSION, lambda: _running(ctx))
        if _is_affected(running):
            text = f"Harvester {running} recovers no VM of a node that is down until UpgradePlan {ctx.owner.name} ends"
            ctx.status.mark(VM_RECOVERY_OFF, "PlanUnfinished", f"{text}. {todo}")
    return None


def clear(ctx: ReconcileContext) -> None:
    """Remove the condition, because the plan goes on, or has ended."""
    ctx.status.unmark(VM_RECOVERY_OFF)


async def _running(ctx: ReconcileContext) -> str:
    return versions.running(await ctx.client.find(SETTINGS, SETTING_SERVER_VERSION) or {})


def _is_affected(running: str) -> bool:
    """Return True for v1.9 and later; a development build counts as later, because it has no number."""
    try:
        core = Version.parse(running).core
    except InvalidVersion:
        return False
    return core is None or core[:2] >= _FIRST
