"""Why the Jobs of a Plan do not start, in the words of whoever knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.kinds import EVENTS

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: The controller's conditions that stand before any work, in its order.
_CONDITIONS = ("Validated", "LatestResolved")


async def complaint_about(client: Client, plan: Object) -> str:
    """What the Plan's own conditions find wrong with it, else its newest Warning event; empty where nobody complains.

    Nothing is decided by it: where the events cannot be read the reader has to look for himself.
    """
    for type_ in _CONDITIONS:
        found = objects.condition(plan, type_) or {}
        if found.get("status") == "False" and found.get("message"):
            return _one_line(found["message"])
    try:
        selector = f"involvedObject.kind=Plan,involvedObject.name={objects.name(plan)},type=Warning"
        events = await client.list(EVENTS, namespace=objects.namespace(plan), field_selector=selector)
    except KubeError:
        return ""
    about_this = [event for event in events.items if event["involvedObject"].get("uid") in {None, objects.uid(plan)}]
    newest = max(about_this, key=_time, default={})
    return _one_line(newest.get("message") or newest.get("reason") or "")


def _time(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or objects.metadata(event).get("creationTimestamp"))


def _one_line(text: str) -> str:
    return " ".join(text.split())
