"""The time from the last object that a phase waits for to the first write of the next phase, from recorded requests."""

from __future__ import annotations

import asyncio
import json
import statistics
from typing import TYPE_CHECKING

from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER
from hack.bench.reaction import over_https
from upgrade_manager.api.keys import HARVESTER_SYSTEM, RKE_POST_DRAIN
from upgrade_manager.api.phases import PhaseName, phase_of
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hack.bench.recorder import Exchange
    from upgrade_manager.kube.objects import Object

_REDIRECT = 300


def _is_ready(endpoint_slice: Object) -> bool:
    return any((one.get("conditions") or {}).get("ready") for one in endpoint_slice.get("endpoints") or [])


def _is_available(deployment: Object) -> bool:
    wanted = objects.spec(deployment).get("replicas", 1)
    return bool(objects.status(deployment).get("availableReplicas", 0) >= wanted)


def _is_complete(obj: Object) -> bool:
    return objects.is_condition_true(obj, "Complete")


def _is_complete_in_harvester_system(job: Object) -> bool:
    return objects.namespace(job) == HARVESTER_SYSTEM and _is_complete(job)


#: The objects that each phase waits for, by kind: the phase ends when the check is true of the last of them. Initialize
#: and MetadataPopulate are missing: they wait for kubelets and the repository.
AWAITED: dict[PhaseName, dict[str, Callable[[Object], bool]]] = {
    PhaseName.ISO_DOWNLOAD: {"VirtualMachineImage": lambda image: objects.is_condition_true(image, "Imported")},
    PhaseName.REPO_CREATE: {"Deployment": _is_available, "EndpointSlice": _is_ready},
    PhaseName.IMAGE_PRELOAD: {"Plan": _is_complete},
    PhaseName.CLUSTER_UPGRADE: {"Job": _is_complete_in_harvester_system},
    PhaseName.NODE_UPGRADE: {"Secret": lambda secret: RKE_POST_DRAIN not in objects.annotations_of(secret)},
    PhaseName.IMAGE_CLEANUP: {"Plan": _is_complete},
}


def phase_changes(exchanges: Sequence[Exchange], *, manager: str) -> dict[PhaseName, float]:
    """Return seconds by the phase that ended, from the response to the awaited write to the manager's next write.

    `manager` is the prefix of its User-Agent. The exchanges are those of all clients, on one clock.
    """
    timeline = _Timeline(manager)
    for exchange in sorted(exchanges, key=lambda exchange: exchange.began):
        if exchange.writes and exchange.status < _REDIRECT:
            timeline.add(exchange)
    return timeline.changes


class _Timeline:
    """The writes of an upgrade, one after the other."""

    def __init__(self, manager: str) -> None:
        self._manager = manager
        self._phase: PhaseName | None = None
        #: The manager's writes except Events and status messages, and their number at the start of the phase.
        self._writes: list[Exchange] = []
        self._at_start = 0
        #: By phase and uid: the result of the check when the object was last written.
        self._checks: dict[tuple[PhaseName, str], bool] = {}
        #: By phase: the last write that made a check true, and the number of the manager's writes before it. An object
        #: may be ready before the phase that created it is recorded.
        self._ready: dict[PhaseName, tuple[Exchange, int]] = {}
        #: By the phase that ended.
        self.changes: dict[PhaseName, float] = {}

    def add(self, exchange: Exchange) -> None:
        """Add the next write."""
        if not exchange.user_agent.startswith(self._manager):
            self._check(exchange)
        elif "/events" not in exchange.request.path:
            phase = _recorded_phase(exchange)
            if phase or not exchange.writes_status:
                self._writes.append(exchange)
            if phase:
                self._enter(phase)

    def _check(self, exchange: Exchange) -> None:
        if not exchange.body:
            return
        obj = json.loads(exchange.body)
        for phase, checks in AWAITED.items():
            check = checks.get(obj.get("kind", ""))
            if check is None:
                continue
            key, result = (phase, objects.uid(obj)), check(obj)
            if result and not self._checks.get(key):
                self._ready[phase] = exchange, len(self._writes)
            self._checks[key] = result

    def _enter(self, value: str) -> None:
        if self._phase in self._ready:
            # Removed, because the last phase ends twice: when it completes and when the upgrade does.
            ready, count = self._ready.pop(self._phase)
            first = self._writes[max(count, self._at_start)]
            self.changes[self._phase] = max(0.0, first.began - ready.ended)
        self._phase, self._at_start = phase_of(value), len(self._writes)


def _recorded_phase(exchange: Exchange) -> str:
    if not exchange.writes_status:
        return ""
    return str((json.loads(exchange.request.body).get("status") or {}).get("currentPhase") or "")


SCENARIO = "three-nodes"
#: Of the scenario's durations: short, but without simultaneous events.
SCALE = 0.3
#: Upgrades, all of which count.
RUNS = 5
#: Milliseconds.
TARGET = 50


def measure() -> list[Figure]:
    """Upgrade three nodes several times in real time, over HTTPS on the embedded server."""
    recorders = [asyncio.run(over_https(SCENARIO, scale=SCALE)) for _ in range(RUNS)]
    return _figures([phase_changes(one.exchanges, manager=MANAGER) for one in recorders])


def _figures(runs: Sequence[Mapping[PhaseName, float]]) -> list[Figure]:
    """Return the median of all and the worst of each phase. Raises KeyError when a run lacks a phase."""
    ends = {phase: [1000 * run[phase] for run in runs] for phase in AWAITED}
    median = statistics.median(value for values in ends.values() for value in values)
    return [
        Figure(name="phase changes, median of all", value=median, unit="ms", target=TARGET),
        *(
            Figure(name=f"{phase} ready to the next write, worst", value=max(values), unit="ms", target=TARGET)
            for phase, values in ends.items()
        ),
    ]
