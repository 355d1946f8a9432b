from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

import pytest

from upgrade_manager.kube.errors import Transient
from upgrade_manager.preflight.errors import Unanswered
from upgrade_manager.preflight.poller import (
    BREADTH,
    ENOUGH,
    LONGEST_PAUSE,
    LOOK,
    MOST_PATIENCE,
    PATIENCE,
    Inquiry,
    Survey,
)

GOOD, BAD = "good", "bad"


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
    inquiry: Inquiry[str] = field(default_factory=lambda: Inquiry(monotonic=loop_time))

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

    async def look(self) -> Survey[str]:
        asks = {name: partial(self._ask, name) for name in self.says}
        return await self.inquiry.look(asks, satisfies=lambda said: said == GOOD)

    async def look_until_complete(self) -> Survey[str]:
        """As the reconciler does: again when the survey says."""
        while not (survey := await self.look()).complete:  # noqa: ASYNC110  # what is waited for is time
            await asyncio.sleep(survey.after)
        return survey

    def times(self, name: str) -> int:
        return len(self.asked[name])


SILENT = Unanswered("it sleeps")


async def test_who_answers_well_is_asked_once() -> None:
    people = People({"a": GOOD, "b": GOOD})
    assert (await people.look()).answers == {"a": GOOD, "b": GOOD}
    await asyncio.sleep(30)
    assert (await people.look()).complete
    assert people.times("a") == people.times("b") == 1


@pytest.mark.rule("pipeline: an unreachable kubelet is retried for a minute before the check fails")
async def test_who_is_silent_is_asked_for_a_minute_before_it_is_given_up() -> None:
    people = People({"a": SILENT, "b": GOOD})
    survey = await people.look_until_complete()
    assert survey.given_up == {"a": "it sleeps"}
    assert survey.answers == {"b": GOOD}
    first, *_, last = people.asked["a"]
    assert last - first == PATIENCE
    assert people.times("b") == 1


async def test_a_minute_in_which_nobody_could_ask_proves_nothing() -> None:
    people = People({"a": SILENT})
    await people.look()
    await asyncio.sleep(PATIENCE + 20)
    survey = await people.look()
    assert (dict(survey.silent), dict(survey.given_up)) == ({"a": "it sleeps"}, {})
    assert (await people.look_until_complete()).given_up == {"a": "it sleeps"}
    assert people.times("a") == ENOUGH


async def test_three_minutes_are_enough_where_nobodys_turn_comes_often() -> None:
    people = People({"a": SILENT})
    for _ in range(3):
        await people.look()
        await asyncio.sleep(MOST_PATIENCE / 2)
    assert (await people.look()).given_up == {"a": "it sleeps"}
    assert people.times("a") < ENOUGH


async def test_the_pauses_grow_to_ten_seconds_so_a_minute_costs_few_questions() -> None:
    people = People({"a": SILENT})
    await people.look_until_complete()
    pauses = [later - earlier for earlier, later in zip(people.asked["a"], people.asked["a"][1:], strict=False)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert max(pauses) == LONGEST_PAUSE
    assert people.times("a") <= 11


async def test_who_answers_within_its_minute_counts_as_if_it_always_had() -> None:
    people = People({"a": SILENT})
    assert (await people.look()).silent == {"a": "it sleeps"}
    people.says["a"] = GOOD
    survey = await people.look_until_complete()
    assert (survey.answers, dict(survey.silent), dict(survey.given_up)) == ({"a": GOOD}, {}, {})


async def test_a_silence_that_was_broken_begins_anew() -> None:
    people = People({"a": SILENT, "b": SILENT})
    for seconds in (1, 2, 37):
        await people.look()
        await asyncio.sleep(seconds)
    people.says["a"] = BAD
    await people.look()
    people.says["a"] = SILENT
    await asyncio.sleep(LONGEST_PAUSE)
    await people.look()
    await asyncio.sleep(LONGEST_PAUSE)
    survey = await people.look()
    assert dict(survey.given_up) == {"b": "it sleeps"}
    assert dict(survey.silent) == {"a": "it sleeps"}


async def test_looking_more_often_does_not_ask_more_often() -> None:
    people = People({"a": SILENT})
    for _ in range(600):
        survey = await people.look()
        await asyncio.sleep(0.05)
    assert survey.silent == {"a": "it sleeps"}
    assert people.times("a") <= 6


async def test_an_answer_that_does_not_satisfy_counts_at_once_and_may_be_mended_meanwhile() -> None:
    people = People({"a": BAD, "b": SILENT})
    survey = await people.look()
    assert survey.answers == {"a": BAD}
    people.says["a"] = GOOD
    await asyncio.sleep(1)
    assert (await people.look()).answers == {"a": GOOD}
    await asyncio.sleep(PATIENCE)
    await people.look()
    assert people.times("a") == 2


async def test_so_many_are_asked_at_a_time_and_no_more() -> None:
    people = People({str(number): GOOD for number in range(1000)}, takes=0.1)
    assert (await people.look()).complete
    assert people.most == BREADTH
    assert sum(map(len, people.asked.values())) == 1000


async def test_a_look_ends_however_many_are_slow_and_the_next_goes_on_with_the_others() -> None:
    people = People({str(number): SILENT for number in range(100)}, takes=10.0)
    began = loop_time()
    survey = await people.look()
    assert loop_time() - began <= LOOK + 10
    assert len(survey.silent) + len(survey.unasked) == 100
    assert survey.after == 0
    for name in survey.unasked:
        people.says[name] = GOOD
    while (survey := await people.look()).unasked:  # noqa: ASYNC110  # what is waited for is time
        await asyncio.sleep(survey.after)
    assert {len(times) for name, times in people.asked.items() if people.says[name] == GOOD} == {1}


async def test_who_left_is_forgotten_and_who_came_is_asked() -> None:
    people = People({"a": SILENT, "b": GOOD})
    await people.look()
    people.says = {"b": GOOD, "c": GOOD}
    survey = await people.look()
    assert survey.complete
    assert survey.answers == {"b": GOOD, "c": GOOD}


async def test_an_api_server_without_an_answer_is_no_silence_of_those_behind_it() -> None:
    people = People({"a": Transient("no API server"), "b": GOOD})
    with pytest.raises(Transient, match="no API server"):
        await people.look()
    people.says["a"] = GOOD
    assert (await people.look()).answers == {"a": GOOD, "b": GOOD}


async def test_nobody_is_asked_where_nobody_is() -> None:
    assert (await People({}).look()).complete
