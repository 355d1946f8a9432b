"""Polls many targets that may be slow or down, over several reconciles.

check.py polls kubelets and API servers with it.

Results are kept in memory only, timed by the monotonic clock. After a restart the timeout starts over, so a target
may be declared failed late but never early.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from upgrade_manager.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

Result = TypeVar("Result")
Probe: TypeAlias = "Callable[[], Awaitable[Result]]"

#: Seconds for which probes of a target must keep failing before the target counts as failed.
FAILURE_TIMEOUT = 60.0
#: Consecutive failures that are also required.
MIN_FAILURES = 6
#: Seconds after which fewer failures suffice: among hundreds of failing targets each is probed rarely.
MAX_FAILURE_TIMEOUT = 180.0
#: Probes that run at the same time.
CONCURRENCY = 16
#: Seconds after which a poll starts no further probe; the next reconcile continues.
POLL_BUDGET = 15.0
#: Seconds between probes of one target: the first delay, doubled up to the second.
BASE_DELAY, MAX_DELAY = 1.0, 10.0


class ProbeError(Exception):
    """A target does not respond, or its response is unusable. The poller tries again.

    `str()` is the reason, for users; it does not name the target. `remedy` is what to do, where that is known.
    """

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


@dataclass(slots=True)
class _Target(Generic[Result]):
    """State of one target. Invariant: at most one of `result` and `error` is set; before the first probe, neither."""

    result: Result | None = None
    error: str = ""
    remedy: str = ""
    #: Times of the first and the last consecutive failure.
    failing_since: float = 0.0
    failing_until: float = 0.0
    failures: int = 0
    #: Earliest time of the next probe.
    due: float = 0.0
    probes: int = 0

    @property
    def failed(self) -> bool:
        """True once the target has failed for the whole timeout."""
        failing = self.failing_until - self.failing_since if self.error else 0.0
        return failing >= FAILURE_TIMEOUT and (self.failures >= MIN_FAILURES or failing >= MAX_FAILURE_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll(Generic[Result]):
    """The state of all targets after a poll. Each target is in exactly one of the first four fields."""

    results: Mapping[str, Result]
    #: Errors of targets that are failing, but not for the whole timeout yet.
    failing: Mapping[str, str]
    #: Errors of targets that have failed.
    failed: Mapping[str, str]
    #: The remedy for failing and failed targets, where it is known.
    remedies: Mapping[str, str]
    #: Targets that the poll had no time for.
    unprobed: tuple[str, ...]
    #: Seconds until the next probe is due.
    retry_after: float


class Poller(Generic[Result]):
    """Runs one probe per target, repeatedly, until each has succeeded or failed."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._targets: dict[str, _Target[Result]] = {}

    async def poll(self, probes: Mapping[str, Probe[Result]], *, done: Callable[[Result], bool]) -> Poll[Result]:
        """Run the probes that are due. Targets that are missing from `probes` are forgotten.

        A result that is not `done` is reported at once, but probed again at later polls, because it may improve while
        other targets are pending. Raises KubeError when the API server itself does not respond.
        """
        self._targets = {name: self._targets.get(name) or _Target() for name in probes}
        now = self._monotonic()
        due = [
            name
            for name, target in self._targets.items()
            if target.due <= now and (target.result is None or not done(target.result))
        ]
        # New targets go first, so that many failing ones cannot starve them.
        due.sort(key=lambda name: self._targets[name].probes)
        await self._probe_all(probes, due, deadline=now + POLL_BUDGET)
        return self._summary()

    async def _probe_all(self, probes: Mapping[str, Probe[Result]], due: list[str], *, deadline: float) -> None:
        names, errors = iter(due), list[KubeError]()
        async with asyncio.TaskGroup() as group:
            for _ in range(min(CONCURRENCY, len(due))):
                group.create_task(self._worker(names, probes, errors, deadline))
        if errors:
            raise errors[0]

    async def _worker(
        self, names: Iterator[str], probes: Mapping[str, Probe[Result]], errors: list[KubeError], deadline: float
    ) -> None:
        for name in names:
            try:
                await self._probe(self._targets[name], probes[name])
            except KubeError as error:
                errors.append(error)
            if errors or self._monotonic() >= deadline:
                return

    async def _probe(self, target: _Target[Result], probe: Probe[Result]) -> None:
        try:
            result = await probe()
        except ProbeError as error:
            now = self._monotonic()
            target.failing_since = target.failing_since if target.error else now
            target.result, target.error, target.remedy, target.failing_until = None, str(error), error.remedy, now
            target.failures += 1
        else:
            target.result, target.error, target.failures = result, "", 0
        self._schedule(target)

    def _schedule(self, target: _Target[Result]) -> None:
        now = self._monotonic()
        target.due = now + min(MAX_DELAY, BASE_DELAY * 2**target.probes)
        target.probes = min(target.probes + 1, 10)
        end = target.failing_since + FAILURE_TIMEOUT
        if target.error and now < end:
            # Probe exactly when the timeout ends.
            target.due = min(target.due, end)

    def _summary(self) -> Poll[Result]:
        now = self._monotonic()
        failing = {name: target for name, target in self._targets.items() if target.error and not target.failed}
        unprobed = tuple(name for name, target in self._targets.items() if not target.probes)
        due = min((target.due for target in failing.values()), default=now)
        return Poll(
            results={name: target.result for name, target in self._targets.items() if target.result is not None},
            failing={name: target.error for name, target in failing.items()},
            failed={name: target.error for name, target in self._targets.items() if target.failed},
            remedies={name: target.remedy for name, target in self._targets.items() if target.error and target.remedy},
            unprobed=unprobed,
            retry_after=0.0 if unprobed else max(0.0, due - now),
        )
