from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import pytest

from upgrade_manager.preflight.poller import (
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
class Targets:
    """Simulated targets: the result of each, and the times of its probes."""

    results: dict[str, str | Exception]
    duration: float = 0.0
    probed: dict[str, list[float]] = field(default_factory=dict)
    poller: Poller[str] = field(default_factory=lambda: Poller(monotonic=loop_time))

    async def _probe(self, name: str) -> str:
        self.probed.setdefault(name, []).append(loop_time())
        await asyncio.sleep(self.duration)
        result = self.results[name]
        if isinstance(result, Exception):
            raise result
        return result

    async def poll_once(self) -> Poll[str]:
        probes = {name: partial(self._probe, name) for name in self.results}
        return await self.poller.poll(probes, done=lambda result: result == GOOD)

    async def poll_until_complete(self) -> Poll[str]:
        """Poll when `retry_after` says, like the reconciler."""
        while not complete(poll := await self.poll_once()):  # noqa: ASYNC110  # what is waited for is time
            await asyncio.sleep(poll.retry_after)
        return poll

    def times(self, name: str) -> int:
        return len(self.probed[name])


FAILING = ProbeError("down")


async def test_done_target_is_probed_once() -> None:
    assert complete(await Targets({}).poll_once())
    targets = Targets({"a": GOOD, "b": GOOD})
    assert (await targets.poll_once()).results == {"a": GOOD, "b": GOOD}
    await asyncio.sleep(30)
    assert complete(await targets.poll_once())
    assert targets.times("a") == targets.times("b") == 1


@pytest.mark.rule("pipeline: an unreachable kubelet is retried for a minute before the check fails")
async def test_failing_target_is_probed_for_a_minute() -> None:
    targets = Targets({"a": FAILING, "b": GOOD})
    poll = await targets.poll_until_complete()
    assert poll.failed == {"a": "down"}
    assert poll.results == {"b": GOOD}
    first, *_, last = targets.probed["a"]
    assert last - first == FAILURE_TIMEOUT
    pauses = [later - earlier for earlier, later in pairwise(targets.probed["a"])]
    assert pauses[:4] == [1, 2, 4, 8]
    assert max(pauses) == MAX_DELAY
    assert targets.times("a") <= 11
    assert targets.times("b") == 1


async def test_few_failures_extend_a_minute_to_three() -> None:
    targets = Targets({"a": FAILING})
    await targets.poll_once()
    await asyncio.sleep(FAILURE_TIMEOUT + 20)
    assert not (poll := await targets.poll_once()).failed
    assert poll.failing == {"a": "down"}
    assert (await targets.poll_until_complete()).failed == {"a": "down"}
    assert targets.times("a") == MIN_FAILURES
    targets = Targets({"a": FAILING})
    for _ in range(3):
        await targets.poll_once()
        await asyncio.sleep(MAX_FAILURE_TIMEOUT / 2)
    assert (await targets.poll_once()).failed == {"a": "down"}
    assert targets.times("a") < MIN_FAILURES


async def test_success_resets_the_timeout() -> None:
    targets = Targets({"a": FAILING, "b": FAILING})
    for seconds in (1, 2, 37):
        await targets.poll_once()
        await asyncio.sleep(seconds)
    targets.results["a"] = BAD
    await targets.poll_once()
    targets.results["a"] = FAILING
    await asyncio.sleep(MAX_DELAY)
    await targets.poll_once()
    await asyncio.sleep(MAX_DELAY)
    poll = await targets.poll_once()
    assert dict(poll.failed) == {"b": "down"}
    assert dict(poll.failing) == {"a": "down"}


async def test_frequent_polls_do_not_probe_more_often() -> None:
    targets = Targets({"a": FAILING})
    for _ in range(600):
        poll = await targets.poll_once()
        await asyncio.sleep(0.05)
    assert poll.failing == {"a": "down"}
    assert targets.times("a") <= 6


async def test_unsatisfying_result_is_reported_and_probed_again() -> None:
    targets = Targets({"a": BAD, "b": FAILING})
    poll = await targets.poll_once()
    assert poll.results == {"a": BAD}
    targets.results["a"] = GOOD
    await asyncio.sleep(1)
    assert (await targets.poll_once()).results == {"a": GOOD}
    await asyncio.sleep(FAILURE_TIMEOUT)
    await targets.poll_once()
    assert targets.times("a") == 2


async def test_poll_has_a_time_budget_and_the_next_continues() -> None:
    targets = Targets({str(number): FAILING for number in range(100)}, duration=10.0)
    began = loop_time()
    poll = await targets.poll_once()
    assert loop_time() - began <= POLL_BUDGET + 10
    assert len(poll.failing) + len(poll.unprobed) == 100
    assert poll.retry_after == 0
    for name in poll.unprobed:
        targets.results[name] = GOOD
    while (poll := await targets.poll_once()).unprobed:  # noqa: ASYNC110  # what is waited for is time
        await asyncio.sleep(poll.retry_after)
    assert {len(times) for name, times in targets.probed.items() if targets.results[name] == GOOD} == {1}


async def test_targets_may_come_and_go() -> None:
    targets = Targets({"a": FAILING, "b": GOOD})
    await targets.poll_once()
    targets.results = {"b": GOOD, "c": GOOD}
    poll = await targets.poll_once()
    assert complete(poll)
    assert poll.results == {"b": GOOD, "c": GOOD}


async def test_failing_target_has_its_remedy() -> None:
    targets = Targets({"a": ProbeError("403", remedy="Grant it"), "b": ProbeError("silent"), "c": GOOD})
    poll = await targets.poll_once()
    assert (dict(poll.failing), dict(poll.remedies)) == ({"a": "403", "b": "silent"}, {"a": "Grant it"})
    targets.results["a"] = GOOD
    await asyncio.sleep(MAX_DELAY)
    assert (await targets.poll_once()).remedies == {}
