"""How long after the last object that a phase waits for the next phase makes its first write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, RKE_POST_DRAIN
from upgrade_manager.api.phases import PhaseName, phase_of
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hack.bench.recorder import Exchange
    from upgrade_manager.kube.objects import Object

_REFUSED = 300
#: Of a plan's status: a write without it only informs, and is nobody's first.
_PHASE = "currentPhase"


def _is_served(piece: Object) -> bool:
    return any((endpoint.get("conditions") or {}).get("ready") for endpoint in piece.get("endpoints") or [])


def _is_up(deployment: Object) -> bool:
    wanted = objects.spec(deployment).get("replicas", 1)
    return bool(objects.status(deployment).get("availableReplicas", 0) >= wanted)


def _is_complete(obj: Object) -> bool:
    return objects.is_condition_true(obj, "Complete")


def _is_own_and_complete(job: Object) -> bool:
    return objects.namespace(job) == HARVESTER_SYSTEM and _is_complete(job)


#: What each phase waits for, by kind: it may go on once the check is true of the last of them. What a phase asks by
#: itself (Initialize the kubelets, MetadataPopulate the repository) is no object.
AWAITED: dict[PhaseName, dict[str, Callable[[Object], bool]]] = {
    PhaseName.ISO_DOWNLOAD: {"VirtualMachineImage": lambda image: objects.is_condition_true(image, "Imported")},
    PhaseName.REPO_CREATE: {"Deployment": _is_up, "EndpointSlice": _is_served},
    PhaseName.IMAGE_PRELOAD: {"Plan": _is_complete},
    PhaseName.CLUSTER_UPGRADE: {"Job": _is_own_and_complete},
    PhaseName.NODE_UPGRADE: {"Secret": lambda secret: RKE_POST_DRAIN not in objects.annotations_of(secret)},
    PhaseName.IMAGE_CLEANUP: {"Plan": _is_complete},
}


def phase_changes(exchanges: Sequence[Exchange], *, manager: str) -> dict[PhaseName, float]:
    """Seconds by the phase that ended, from the answer to the awaited write to the beginning of the manager's next.

    `manager` is the beginning of its User-Agent. The exchanges are those of everybody, on one clock.
    """
    course = _Course(manager)
    for exchange in sorted(exchanges, key=lambda exchange: exchange.began):
        if exchange.writes and exchange.status < _REFUSED:
            course.take(exchange)
    return course.changes


class _Course:
    """An upgrade as its writes tell it, one after the other."""

    def __init__(self, manager: str) -> None:
        self._manager = manager
        self._phase: PhaseName | None = None
        #: The manager's writes that do more than inform, and how many they were when the current phase was recorded.
        self._acts: list[Exchange] = []
        self._entered = 0
        #: By phase and uid: whether the check was true when the object was last seen.
        self._seen: dict[tuple[PhaseName, str], bool] = {}
        #: By phase: the last write by which a check has become true, and how many acts were before it. What is
        #: made at once may be ready before the phase that made it is on record.
        self._ready: dict[PhaseName, tuple[Exchange, int]] = {}
        #: By the phase that ended.
        self.changes: dict[PhaseName, float] = {}

    def take(self, exchange: Exchange) -> None:
        """The next write."""
        if not exchange.user_agent.startswith(self._manager):
            self._look(exchange)
        elif "/events" not in exchange.request.path:
            recorded = _recorded(exchange)
            if recorded or not exchange.writes_status:
                self._acts.append(exchange)
            if recorded:
                self._enter(recorded)

    def _look(self, exchange: Exchange) -> None:
        if not exchange.answer:
            return
        obj = json.loads(exchange.answer)
        for phase, checks in AWAITED.items():
            check = checks.get(obj.get("kind", ""))
            if check is None:
                continue
            key, now = (phase, objects.uid(obj)), check(obj)
            if now and not self._seen.get(key):
                self._ready[phase] = exchange, len(self._acts)
            self._seen[key] = now

    def _enter(self, value: str) -> None:
        if self._phase in self._ready:
            # Taken out: the last phase is left twice, once completed and once at the upgrade's end.
            ready, acts = self._ready.pop(self._phase)
            first = self._acts[max(acts, self._entered)]
            self.changes[self._phase] = max(0.0, first.began - ready.ended)
        self._phase, self._entered = phase_of(value), len(self._acts)


def _recorded(exchange: Exchange) -> str:
    """The phase that it records; empty where it records none."""
    if not exchange.writes_status:
        return ""
    return str((json.loads(exchange.request.body).get("status") or {}).get(_PHASE) or "")
