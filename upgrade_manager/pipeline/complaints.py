"""Why a Plan has no Jobs, or a Job no Pods, in the words of whoever knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import EVENTS
from upgrade_manager.pipeline.explanation import explaining

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: The controller's conditions that stand before any work, in its order.
_CONDITIONS = ("Validated", "LatestResolved")


def own_complaint(plan: Object) -> str:
    """What the Plan's own conditions find wrong with it; empty where that is nothing."""
    for type_ in _CONDITIONS:
        found = objects.condition(plan, type_) or {}
        if found.get("status") == "False" and found.get("message"):
            return _one_line(found["message"])
    return ""


async def newest_warning(client: Client, about: Object, *, kind: str) -> str:
    """What the newest Warning event about the object says; empty where there is none.

    Nothing is decided by it: where the events cannot be read the reader has to look for himself.
    """
    selector = f"involvedObject.kind={kind},involvedObject.name={objects.name(about)},type=Warning"
    events = await explaining(client, EVENTS, namespace=objects.namespace(about), field_selector=selector)
    about_this = [event for event in events if event["involvedObject"].get("uid") in {None, objects.uid(about)}]
    newest = max(about_this, key=_time, default={})
    return _one_line(newest.get("message") or newest.get("reason") or "")


def _time(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or objects.metadata(event).get("creationTimestamp"))


def _one_line(text: str) -> str:
    return " ".join(text.split())
