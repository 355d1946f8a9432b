"""Reads the plan that a command is about, and its events.

status.py, status_watch.py, report.py and completion.py read by it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import DEFAULT_NAMESPACE, HARVESTER_SYSTEM, KIND, LABEL_PLAN_UID
from upgrade_manager.api.names import history_config_map
from upgrade_manager.cli.api_server_check import RESPONSE_TIMEOUT
from upgrade_manager.display.expectation import UNKNOWN_PACE, Pace, pace_of
from upgrade_manager.display.history import NO_HISTORY
from upgrade_manager.display.view import state_of_plan
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import CONFIG_MAPS, EVENTS, UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.cli.session import Session
    from upgrade_manager.kube.objects import Object


async def read_plans(session: Session, name: str) -> list[Object]:
    """Return the plan of that name, without a name all. Raises CommandError."""
    selector = f"metadata.name={name}" if name else ""
    return (await session.read(session.client.list(UPGRADE_PLANS, field_selector=selector))).items


async def read_plan(session: Session, name: str) -> Object:
    """Return the plan of that name, without a name the one that `choose` picks. Raises CommandError."""
    return choose(session, await read_plans(session, name), name)


def choose(session: Session, plans: Sequence[Object], name: str) -> Object:
    """Return the newest plan that has not ended, else the newest. Raises CommandError without a plan."""
    if not plans:
        raise session.error(f"{KIND} {name} not found. Run kubectl get upgradeplans" if name else f"no {KIND} found")
    return max(plans, key=_rank)


def _rank(plan: Object) -> tuple[bool, bool, str, str]:
    """Sort plans in the queue before the one that they wait for."""
    created = objects.text(plan, "metadata", "creationTimestamp")
    is_queued = bool(objects.text(plan, "status", "queuedSince"))
    return not state_of_plan(plan).is_end, not is_queued, created, objects.name(plan)


def events_of(plan: Object) -> Selection:
    """Return the selection of the plan's events."""
    uid = objects.text(plan, "metadata", "uid")
    return Selection(resource=EVENTS, namespace=DEFAULT_NAMESPACE, field_selector=f"involvedObject.uid={uid}")


async def read_optional(session: Session, selection: Selection) -> tuple[list[Object], str]:
    """Return the selected objects; none, and the reason, if the user may not read them."""
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT):
            listed = await session.client.list(
                selection.resource, namespace=selection.namespace, field_selector=selection.field_selector
            )
    except (KubeError, TimeoutError) as error:
        return [], str(error) or "no response"
    return listed.items, ""


async def read_history(session: Session, plan: Object) -> tuple[Mapping[str, object], str]:
    """Return the data of the plan's history; nothing without one, with the reason if the user may not read it."""
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT):
            name = history_config_map(objects.name(plan))
            found = await session.client.find(CONFIG_MAPS, name, namespace=HARVESTER_SYSTEM)
    except (KubeError, TimeoutError) as error:
        return NO_HISTORY, str(error) or "no response"
    return history_of(plan, found), ""


def history_of(plan: Object, found: Object | None) -> Mapping[str, object]:
    """Return the data of a ConfigMap that was created for this plan; that of an earlier plan of the name has none."""
    uid = objects.text(plan, "metadata", "uid")
    is_own = uid and objects.text(found, "metadata", "labels", LABEL_PLAN_UID) == uid
    return objects.mapping(found, "data") if is_own else NO_HISTORY


async def read_pace(session: Session, plan: Object, plans: Sequence[Object], name: str) -> Pace:
    """Return how long phases took in other upgrades; unknown for a plan that has ended, which needs no estimate.

    `plans` are those that were read: the plan alone if the user named it.
    """
    if state_of_plan(plan).is_end:
        return UNKNOWN_PACE
    if name:
        plans, _ = await read_optional(session, Selection(resource=UPGRADE_PLANS))
    return pace_for(plan, plans)


def pace_for(plan: Object, plans: Sequence[Object]) -> Pace:
    """Return how long phases took in the other ones of these plans; unknown for a plan that has ended."""
    if state_of_plan(plan).is_end:
        return UNKNOWN_PACE
    return pace_of(one for one in plans if objects.name(one) != objects.name(plan))
