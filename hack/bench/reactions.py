"""Which writes of others the manager waits for, and how long after each it acts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import RKE_POST_DRAIN, RKE_PRE_DRAIN
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hack.bench.recorder import Exchange
    from upgrade_manager.kube.objects import Object


def reactions(exchanges: Sequence[Exchange], *, manager: str, os_image: str) -> list[float]:
    """Seconds from each write that brought what was awaited to the manager's next write, in the order of the run."""
    seen: set[tuple[str, str]] = set()
    waiting_since: list[float] = []
    found = []
    for exchange in sorted(exchanges, key=lambda exchange: exchange.began):
        if not exchange.writes:
            continue
        if exchange.user_agent.startswith(manager):
            if not _is_event(exchange):
                found += [exchange.began - since for since in waiting_since if since <= exchange.began]
                waiting_since = [since for since in waiting_since if since > exchange.began]
        elif exchange.answer and exchange.status < 300:  # noqa: PLR2004  # it was done
            new = set(_awaited(json.loads(exchange.answer), os_image=os_image)) - seen
            seen |= new
            waiting_since += [exchange.ended] * len(new)
    return found


def _is_event(exchange: Exchange) -> bool:
    return "/events" in exchange.request.path


def _awaited(obj: Object, *, os_image: str) -> Iterator[tuple[str, str]]:
    """The awaited moments that the object, as it is now, has reached: its uid and a name for the moment."""
    kind, uid = obj.get("kind"), objects.uid(obj)
    if kind == "VirtualMachineImage" and objects.is_condition_true(obj, "Imported"):
        yield uid, "imported"
    if kind == "Job" and objects.namespace(obj) == "harvester-system" and objects.is_condition_true(obj, "Complete"):
        yield uid, "complete"
    if kind == "Plan" and objects.is_condition_true(obj, "Complete"):
        yield uid, "complete"
    if kind == "Secret":
        annotations = objects.metadata(obj).get("annotations") or {}
        for key in (RKE_PRE_DRAIN, RKE_POST_DRAIN):
            if annotations.get(key):
                yield uid, f"{key}={annotations[key]}"
    if kind == "Node" and objects.is_condition_true(obj, "Ready") and _os_image(obj) == os_image:
        yield uid, "back"


def _os_image(node: Object) -> str:
    return str(objects.status(node).get("nodeInfo", {}).get("osImage", ""))
