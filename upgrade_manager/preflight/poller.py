"""Asking many who may be slow, silent or dead, over as many reconciles as it takes.

What is remembered between two reconciles saves requests and tells how long somebody has been silent. It is lost with
the process, and a minute then begins anew: giving up is final, so it may come late but never early. For the same
reason the minute is one of the monotonic clock, which nobody sets.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from upgrade_manager.kube.errors import KubeError
from upgrade_manager.preflight.errors import Unanswered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

Answer = TypeVar("Answer")
Ask: TypeAlias = "Callable[[], Awaitable[Answer]]"

#: Seconds for which somebody is asked again before that counts as a failure.
PATIENCE = 60.0
#: Seconds after which that is enough in any case.
MOST_PATIENCE = 180.0
#: Attempts in a row that must have failed as well: where we could hardly ask ourselves, a minute proves nothing.
ENOUGH = 6
#: Asked at the same time.
BREADTH = 16
#: Seconds after which a look begins no further question: a reconcile must end within a minute, and goes on later.
LOOK = 15.0
#: Seconds before the first and between later repetitions.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0


@dataclass(slots=True)
class _Asked(Generic[Answer]):
    """Where somebody stands. Invariant: at most one of answer and reason is there; both are absent before the first."""

    #: The last one that could be used.
    answer: Answer | None = None
    #: Why there is none; `since` and `until` are the times of the first and the last attempt that failed in a row.
    reason: str = ""
    since: float = 0.0
    until: float = 0.0
    failures: int = 0
    #: When to ask (again), unless the answer satisfies.
    due: float = 0.0
    times: int = 0

    @property
    def given_up(self) -> bool:
        """Whether it was silent for all of its minute; the last attempt was after that, and one of several."""
        silent = self.until - self.since if self.reason else 0.0
        # Among hundreds of the dead nobody's turn comes often.
        return silent >= PATIENCE and (self.failures >= ENOUGH or silent >= MOST_PATIENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey(Generic[Answer]):
    """What is known of everybody after a look; each one asked is in exactly one of the four."""

    answers: Mapping[str, Answer]
    #: Silent, but not for a minute yet, and why.
    silent: Mapping[str, str]
    #: Silent for a minute, and why.
    given_up: Mapping[str, str]
    #: Not asked yet, for want of time.
    unasked: tuple[str, ...]
    #: Seconds until somebody is to be asked again.
    after: float

    @property
    def complete(self) -> bool:
        """Whether nobody is to be waited for."""
        return not self.silent and not self.unasked


class Inquiry(Generic[Answer]):
    """One question to many, by name."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._asked: dict[str, _Asked[Answer]] = {}

    async def look(self, asks: Mapping[str, Ask[Answer]], *, satisfies: Callable[[Answer], bool]) -> Survey[Answer]:
        """Ask whoever has not given a satisfying answer yet and is due; whoever is not in `asks` is forgotten.

        An answer that does not satisfy counts at once, but is asked for again at every further look: what is wrong may
        be repaired while others are waited for. Raises KubeError where it is the API server that does not answer.
        """
        self._asked = {name: self._asked.get(name) or _Asked() for name in asks}
        now = self._monotonic()
        due = [
            name
            for name, asked in self._asked.items()
            if asked.due <= now and (asked.answer is None or not satisfies(asked.answer))
        ]
        # Whoever was never asked goes first, so that a crowd of the dead cannot keep anybody waiting for ever.
        due.sort(key=lambda name: self._asked[name].times)
        await self._ask_all(asks, due, deadline=now + LOOK)
        return self._survey()

    async def _ask_all(self, asks: Mapping[str, Ask[Answer]], due: list[str], *, deadline: float) -> None:
        names, broken = iter(due), list[KubeError]()
        async with asyncio.TaskGroup() as group:
            for _ in range(min(BREADTH, len(due))):
                group.create_task(self._work(names, asks, broken, deadline))
        if broken:
            raise broken[0]

    async def _work(
        self, names: Iterator[str], asks: Mapping[str, Ask[Answer]], broken: list[KubeError], deadline: float
    ) -> None:
        for name in names:
            try:
                await self._ask(self._asked[name], asks[name])
            except KubeError as error:
                broken.append(error)
            if broken or self._monotonic() >= deadline:
                return

    async def _ask(self, asked: _Asked[Answer], ask: Ask[Answer]) -> None:
        try:
            answer = await ask()
        except Unanswered as silence:
            now = self._monotonic()
            asked.since = asked.since if asked.reason else now
            asked.answer, asked.reason, asked.until = None, str(silence), now
            asked.failures += 1
        else:
            asked.answer, asked.reason, asked.failures = answer, "", 0
        self._schedule(asked)

    def _schedule(self, asked: _Asked[Answer]) -> None:
        now = self._monotonic()
        asked.due = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2**asked.times)
        asked.times = min(asked.times + 1, 10)
        end = asked.since + PATIENCE
        if asked.reason and now < end:
            # The last attempt is at the end of the minute, not some time after.
            asked.due = min(asked.due, end)

    def _survey(self) -> Survey[Answer]:
        now = self._monotonic()
        silent = {name: asked for name, asked in self._asked.items() if asked.reason and not asked.given_up}
        unasked = tuple(name for name, asked in self._asked.items() if not asked.times)
        dues = [asked.due for asked in silent.values()]
        return Survey(
            answers={name: asked.answer for name, asked in self._asked.items() if asked.answer is not None},
            silent={name: asked.reason for name, asked in silent.items()},
            given_up={name: asked.reason for name, asked in self._asked.items() if asked.given_up},
            unasked=unasked,
            after=0.0 if unasked else max(0.0, min(dues, default=now) - now),
        )
