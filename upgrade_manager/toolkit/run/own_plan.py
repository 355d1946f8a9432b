"""The UpgradePlan of a command, which has the plan's name, and in a Job its uid, too.

What reads the plan asks here. Another plan may get the name while a Job of a deleted one runs: it decides nothing about
that Job. A Job of an earlier version of the manager has no uid, and finds its plan by the name alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def find_plan(client: Client, name: str, *, uid: str) -> Object | None:
    """Return the plan; None without a name, and if it was deleted, also where another plan has its name now."""
    found = await client.find(UPGRADE_PLANS, name) if name else None
    is_another = found is not None and bool(uid) and objects.uid(found) != uid
    return None if is_another else found


async def own_plan(context: ToolkitContext) -> Object | None:
    """Return the plan of the command; None if it was deleted."""
    return await find_plan(context.client, context.plan, uid=context.plan_uid)


async def wanted_plan(context: ToolkitContext) -> Object | None:
    """Return the plan as long as its user wants the upgrade; None from the request of its deletion on.

    What is stopped afterwards is recorded nowhere, and nothing starts it again.
    """
    plan = await own_plan(context)
    return None if plan is not None and objects.is_deleting(plan) else plan
