from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

import pytest

from upgrade_manager.kube.errors import Transient
from upgrade_manager.preflight.poller import (
    CONCURRENCY,
    FAILURE_TIMEOUT,
    MAX_DELAY,
    MAX_FAILURE_TIMEOUT,
    MIN_FAILURES,
    POLL_BUDGET,
    Poll,
    Poller,
    ProbeError,
)

GOOD, BAD = "good", "bad"


def complete(poll: Poll[str]) -> bool:
    return not poll.failing and not poll.unprobed


def loop_time() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class People:
    """Who are asked: what each says, and when each was asked."""

    says: dict[str, str | Exception]
    takes: float = 0.0
    asked: dict[str, list[float]] = field(default_factory=dict)
    most: int = 0
    now: int = 0
    poller: Poller[str] = field(default_factory=lambda: Poller(monotonic=loop_time))

    async def _ask(self, name: str) -> str:
        self.asked.setdefault(name, []).append(loop_time())
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.takes)
        self.now -= 1
        said = self.says[name]
        if isinstance(said, Exception):
            raise said
        return said

    async def look(self) -> Poll[str]:
        asks = {name: partial(self._ask, name) for name in self.says}
        return await self.poller.poll(asks, done=lambda said: said == GOOD)

    async def look_until_complete(self) -> Poll[str]:
        """As the reconciler does: again when the poll says."""
        while not complete(poll := await self.look()):  # noqa: ASYNC110  # what is waited for is time
            await asyncio.sleep(poll.retry_after)
        return poll

    def times(self, name: str) -> int:
        return len(self.asked[name])


SILENT = ProbeError("it sleeps")


async def test_who_answers_well_is_asked_once() -> None:
    people = People({"a": GOOD, "b": GOOD})
    assert (await people.look()).results == {"a": GOOD, "b": GOOD}
    await asyncio.sleep(30)
    assert complete(await people.look())
    assert people.times("a") == people.times("b") == 1


@pytest.mark.rule("pipeline: an unreachable kubelet is retried for a minute before the check fails")
async def test_who_is_silent_is_asked_for_a_minute_before_it_is_given_up() -> None:
    people = People({"a": SILENT, "b": GOOD})
    poll = await people.look_until_complete()
    assert poll.failed == {"a": "it sleeps"}
    assert poll.results == {"b": GOOD}
    first, *_, last = people.asked["a"]
    assert last - first == FAILURE_TIMEOUT
    assert people.times("b") == 1


async def test_a_minute_in_which_nobody_could_ask_proves_nothing() -> None:
    people = People({"a": SILENT})
    await people.look()
    await asyncio.sleep(FAILURE_TIMEOUT + 20)
    poll = await people.look()
    assert (dict(poll.failing), dict(poll.failed)) == ({"a": "it sleeps"}, {})
    assert (await people.look_until_complete()).failed == {"a": "it sleeps"}
    assert people.times("a") == MIN_FAILURES


async def test_three_minutes_are_enough_where_nobodys_turn_comes_often() -> None:
    people = People({"a": SILENT})
    for _ in range(3):
        await people.look()
        await asyncio.sleep(MAX_FAILURE_TIMEOUT / 2)
    assert (await people.look()).failed == {"a": "it sleeps"}
    assert people.times("a") < MIN_FAILURES


async def test_the_pauses_grow_to_ten_seconds_so_a_minute_costs_few_questions() -> None:
    people = People({"a": SILENT})
    await people.look_until_complete()
    pauses = [later - earlier for earlier, later in zip(people.asked["a"], people.asked["a"][1:], strict=False)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert max(pauses) == MAX_DELAY
    assert people.times("a") <= 11


async def test_who_answers_within_its_minute_counts_as_if_it_always_had() -> None:
    people = People({"a": SILENT})
    assert (await people.look()).failing == {"a": "it sleeps"}
    people.says["a"] = GOOD
    poll = await people.look_until_complete()
    assert (poll.results, dict(poll.failing), dict(poll.failed)) == ({"a": GOOD}, {}, {})


async def test_a_silence_that_was_broken_begins_anew() -> None:
    people = People({"a": SILENT, "b": SILENT})
    for seconds in (1, 2, 37):
        await people.look()
        await asyncio.sleep(seconds)
    people.says["a"] = BAD
    await people.look()
    people.says["a"] = SILENT
    await asyncio.sleep(MAX_DELAY)
    await people.look()
    await asyncio.sleep(MAX_DELAY)
    poll = await people.look()
    assert dict(poll.failed) == {"b": "it sleeps"}
    assert dict(poll.failing) == {"a": "it sleeps"}


async def test_looking_more_often_does_not_ask_more_often() -> None:
    people = People({"a": SILENT})
    for _ in range(600):
        poll = await people.look()
        await asyncio.sleep(0.05)
    assert poll.failing == {"a": "it sleeps"}
    assert people.times("a") <= 6


async def test_an_answer_that_does_not_satisfy_counts_at_once_and_may_be_mended_meanwhile() -> None:
    people = People({"a": BAD, "b": SILENT})
    poll = await people.look()
    assert poll.results == {"a": BAD}
    people.says["a"] = GOOD
    await asyncio.sleep(1)
    assert (await people.look()).results == {"a": GOOD}
    await asyncio.sleep(FAILURE_TIMEOUT)
    await people.look()
    assert people.times("a") == 2


async def test_so_many_are_asked_at_a_time_and_no_more() -> None:
    people = People({str(number): GOOD for number in range(1000)}, takes=0.1)
    assert complete(await people.look())
    assert people.most == CONCURRENCY
    assert sum(map(len, people.asked.values())) == 1000


async def test_a_look_ends_however_many_are_slow_and_the_next_goes_on_with_the_others() -> None:
    people = People({str(number): SILENT for number in range(100)}, takes=10.0)
    began = loop_time()
    poll = await people.look()
    assert loop_time() - began <= POLL_BUDGET + 10
    assert len(poll.failing) + len(poll.unprobed) == 100
    assert poll.retry_after == 0
    for name in poll.unprobed:
        people.says[name] = GOOD
    while (poll := await people.look()).unprobed:  # noqa: ASYNC110  # what is waited for is time
        await asyncio.sleep(poll.retry_after)
    assert {len(times) for name, times in people.asked.items() if people.says[name] == GOOD} == {1}


async def test_who_left_is_forgotten_and_who_came_is_asked() -> None:
    people = People({"a": SILENT, "b": GOOD})
    await people.look()
    people.says = {"b": GOOD, "c": GOOD}
    poll = await people.look()
    assert complete(poll)
    assert poll.results == {"b": GOOD, "c": GOOD}


async def test_an_api_server_without_an_answer_is_no_silence_of_those_behind_it() -> None:
    people = People({"a": Transient("no API server"), "b": GOOD})
    with pytest.raises(Transient, match="no API server"):
        await people.look()
    people.says["a"] = GOOD
    assert (await people.look()).results == {"a": GOOD, "b": GOOD}


async def test_nobody_is_asked_where_nobody_is() -> None:
    assert complete(await People({}).look())
