"""Containers that serve until they are stopped: Deployments' Pods, which the kubelet starts again when they end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hack.actors.container_work import process_of
from hack.actors.controller_loop import Timers
from hack.actors.pod_status import is_ready
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.actors.context import ActorContext
    from hack.actors.controller_loop import RequeueAfter
    from upgrade_manager.kube.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A container as its kubelet sees it."""

    #: The result of the readiness probe.
    is_ready: bool
    #: The container had ended, and was started again.
    restarted: bool = False
    #: Seconds until the next look.
    again: RequeueAfter = None


class Servers(Protocol):
    """Runs the containers that serve."""

    async def look(self, pod: Object) -> Serving:
        """Return the state of the container, which is started first; called repeatedly."""
        ...

    async def stop(self, pod: Object) -> float:
        """Stop the containers of a deleted Pod; return the seconds until the next call, or 0 when they have ended."""
        ...

    def forget(self, pod: Object) -> None:
        """Forget a Pod that is removed or whose host reboots."""
        ...


class SimulatedServers:
    """Containers that become ready after a while, without a process."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._timers = Timers()

    async def look(self, pod: Object) -> Serving:
        """See Servers; a frozen process fails its readiness probe."""
        if self._context.freezer.hangs(process_of(pod)):
            return Serving(is_ready=False)
        if is_ready(pod):
            return Serving(is_ready=True)
        left = self._left(pod, "ready", self._context.scenario.durations.repository_start)
        return Serving(is_ready=left <= 0, again=left or None)

    async def stop(self, pod: Object) -> float:
        """See Servers."""
        return self._left(pod, "stop", self._context.scenario.durations.pod_stop)

    def forget(self, pod: Object) -> None:
        """See Servers."""
        self._timers.forget(objects.uid(pod))

    def _left(self, pod: Object, what: str, duration: float) -> float:
        return self._timers.left(objects.uid(pod), what, self._context.seconds(duration))
