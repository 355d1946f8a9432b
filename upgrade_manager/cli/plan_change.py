"""Changes the spec or the annotations of a plan for a user; pause.py and hold.py decide what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.cli.plans import read_plan
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, KubeError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.cli.session import Session
    from upgrade_manager.kube.objects import Object

#: The manager writes the plan's status about once a second, each time with another resourceVersion.
ATTEMPTS = 10


async def change_plan(session: Session, plan: Object, decide: Callable[[Object], Object]) -> Object:
    """Return the plan after the change that `decide` returns for it; what others change meanwhile is kept.

    `decide` gets the plan again after each conflict; an empty change writes nothing. Raises CommandError.
    """
    for attempt in range(ATTEMPTS):
        fields = decide(plan)
        if not fields:
            return plan
        patch = MergePatch(fields).at(objects.resource_version(plan))
        try:
            return await session.client.patch(UPGRADE_PLANS, objects.name(plan), patch)
        except Conflict as error:
            if attempt == ATTEMPTS - 1:
                raise session.error(str(error)) from error
        except KubeError as error:
            raise session.error(str(error)) from error
        plan = await read_plan(session, objects.name(plan))
    raise AssertionError("the last attempt returns or raises")
