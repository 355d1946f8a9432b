from __future__ import annotations

import asyncio

import pytest

from upgrade_manager.kube.errors import Conflict, Forbidden, Transient
from upgrade_manager.pipeline.together import AT_ONCE, together


class Steps:
    """Remembers which steps ended, and how many were under way at most."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.most = 0
        self._now = 0

    async def step(self, name: str, *, seconds: float = 1.0, error: Exception | None = None) -> None:
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(seconds)
        self._now -= 1
        if error is not None:
            raise error
        self.ended.append(name)


async def test_slow_steps_are_waited_for_once() -> None:
    steps, began = Steps(), asyncio.get_running_loop().time()
    await together(*(steps.step(str(number), seconds=20) for number in range(7)))
    assert asyncio.get_running_loop().time() - began == 20
    assert len(steps.ended) == 7


async def test_there_are_never_too_many_at_once() -> None:
    steps = Steps()
    await together(*(steps.step(str(number)) for number in range(3 * AT_ONCE)))
    assert (steps.most, len(steps.ended)) == (AT_ONCE, 3 * AT_ONCE)


async def test_a_step_that_cannot_succeed_keeps_none_of_the_others_from_it() -> None:
    steps = Steps()
    with pytest.raises(Forbidden):
        await together(steps.step("a", error=Forbidden("no")), steps.step("b"), steps.step("c", seconds=9))
    assert steps.ended == ["b", "c"]


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        pytest.param([Transient("1"), Forbidden("2")], "1", id="the first"),
        pytest.param([Conflict("1"), Transient("2")], "2", id="a conflict is told last"),
        pytest.param([Conflict("1"), Conflict("2")], "1", id="unless there is nothing else"),
    ],
)
async def test_one_error_speaks_for_all(errors: list[Exception], raised: str) -> None:
    steps = Steps()
    with pytest.raises((Conflict, Transient, Forbidden), match=raised):
        await together(*(steps.step("x", error=error) for error in errors))


async def test_whoever_is_cancelled_leaves_no_step_behind() -> None:
    steps = Steps()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await together(steps.step("a", seconds=5))
    await asyncio.sleep(10)
    assert steps.ended == []
