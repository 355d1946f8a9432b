"""The events by which `kubectl describe pod` shows why a Pod does not start, as kubelet and scheduler word them.

Pods that start have none: the simulated cluster spares its API server the events of healthy upgrades.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.actors.container_work import container_of
from upgrade_manager.kube import objects
from upgrade_manager.kube.events import EventRecorder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.actors.context import ActorContext
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: Seconds between two attempts of a kubelet, which double from the first to the last.
_FIRST_PAUSE, _LAST_PAUSE = 10.0, 300.0
#: Seconds for which a kubelet waits for volumes before it reports them.
_MOUNT_TIMEOUT = 123.0
_NORMAL, _WARNING = "Normal", "Warning"


@dataclass(slots=True, kw_only=True)
class _Failing:
    why: str
    #: The time at which the next attempt fails, in the loop's time.
    due: float
    pause: float = _FIRST_PAUSE


class PodFailures:
    """Records the failing attempts of one component to start Pods."""

    def __init__(self, context: ActorContext, client: Client, *, component: str) -> None:
        self._events = EventRecorder(client, component=component, now=context.now, random=context.random)
        #: By the Pod's uid.
        self._failing: dict[str, _Failing] = {}

    async def run(self) -> None:
        """Send the events until cancelled."""
        await self._events.run()

    def forget(self, pod: Object) -> None:
        """Forget a Pod that starts or is deleted."""
        self._failing.pop(objects.uid(pod), None)

    def record(self, pod: Object, why: str) -> float:
        """Record an attempt if one is due; return the seconds until the next. `why` begins with a reason and a colon.

        The reason is that of a waiting container or of an event.
        """
        now = asyncio.get_running_loop().time()
        known = self._failing.get(objects.uid(pod))
        if known is None or known.why != why:
            delay = _MOUNT_TIMEOUT if why.startswith("ContainerCreating:") else 0.0
            known = self._failing[objects.uid(pod)] = _Failing(why=why, due=now + delay)
        if now >= known.due:
            for type_, reason, message in _events(pod, why):
                self._events.record(pod, type_=type_, reason=reason, message=message)
            known.due = now + known.pause
            known.pause = min(2 * known.pause, _LAST_PAUSE)
        return known.due - now


def failed_probe(pod: Object) -> str:
    """Return why a container that hangs is not ready; empty if it has no readiness probe over HTTP."""
    probe = (container_of(pod).get("readinessProbe") or {}).get("httpGet") or {}
    address = objects.status(pod).get("podIP")
    if not probe or not address:
        return ""
    url = f"http://{address}:{probe.get('port')}{probe.get('path') or '/'}"
    cause = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    return f'Unhealthy: Readiness probe failed: Get "{url}": {cause}'


def _events(pod: Object, why: str) -> Iterable[tuple[str, str, str]]:
    """Return type, reason and message of the events of one failing attempt."""
    reason, _, message = why.partition(": ")
    if reason == "ImagePullBackOff":
        return _pull_events(container_of(pod).get("image") or "", message)
    if reason.startswith("CreateContainer"):
        return [(_WARNING, "Failed", f"Error: {message}")]
    if reason == "ContainerCreating":
        return [_volume_event(message)]
    if reason == "InvalidImageName":
        return [(_WARNING, "InspectFailed", message), (_WARNING, "Failed", "Error: InvalidImageName")]
    return [(_WARNING, reason, message)]


def _volume_event(message: str) -> tuple[str, str, str]:
    if message.startswith("Multi-Attach"):
        return _WARNING, "FailedAttachVolume", message
    return _WARNING, "FailedMount", f"Unable to attach or mount volumes: {message}"


def _pull_events(image: str, message: str) -> Iterable[tuple[str, str, str]]:
    cause = message.rpartition(": ")[2]
    failed = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {cause}'
    return [
        (_NORMAL, "Pulling", f'Pulling image "{image}"'),
        (_WARNING, "Failed", f'Failed to pull image "{image}": {failed}'),
        (_WARNING, "Failed", "Error: ErrImagePull"),
        (_NORMAL, "BackOff", f'Back-off pulling image "{image}"'),
        (_WARNING, "Failed", "Error: ImagePullBackOff"),
    ]
