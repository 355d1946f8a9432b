"""The newest Warning event about an object.

jobs.py and upgrade_controller.py quote it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import EVENTS

if TYPE_CHECKING:
    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object


def latest_warning(view: View, *, kind: str, namespace: str, name: str) -> str:
    """Return the message of the object's newest Warning event, or "". All objects of a kind share one watch."""
    selector = f"involvedObject.kind={kind},type=Warning"
    events = view.objects(Selection(resource=EVENTS, namespace=namespace, field_selector=selector))
    about = (event for event in events if objects.text(event, "involvedObject", "name") == name)
    newest = max(about, key=last_seen, default={})
    return objects.excerpt(newest, "message") or objects.text(newest, "reason")


def last_seen(event: Object) -> str:
    """Return the time at which the event was last seen, as a text for comparison."""
    times = [objects.text(event, key) for key in ("lastTimestamp", "eventTime")]
    return next(filter(None, times), objects.text(event, "metadata", "creationTimestamp"))
