from __future__ import annotations

import asyncio
import inspect

import pytest

from upgrade_manager.kube.errors import Conflict, Forbidden, PreconditionFailed, Transient
from upgrade_manager.runtime.concurrency import MAX_CONCURRENT, run_all


class Steps:
    """Records which steps ended, and how many ran at the same time at most."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.most = 0
        self._running = 0

    async def step(self, name: str, *, seconds: float = 1.0, error: Exception | None = None) -> None:
        self._running += 1
        self.most = max(self.most, self._running)
        await asyncio.sleep(seconds)
        self._running -= 1
        if error is not None:
            raise error
        self.ended.append(name)


async def test_coroutines_run_concurrently_up_to_a_bound() -> None:
    steps, began = Steps(), asyncio.get_running_loop().time()
    await run_all(*(steps.step(str(number), seconds=20) for number in range(3 * MAX_CONCURRENT)))
    assert (steps.most, len(steps.ended)) == (MAX_CONCURRENT, 3 * MAX_CONCURRENT)
    assert asyncio.get_running_loop().time() - began == 3 * 20


async def test_error_does_not_stop_the_others() -> None:
    steps = Steps()
    with pytest.raises(Forbidden):
        await run_all(steps.step("a", error=Forbidden("no")), steps.step("b"), steps.step("c", seconds=9))
    assert steps.ended == ["b", "c"]


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        pytest.param([Transient("1"), Forbidden("2")], "1", id="the first"),
        pytest.param([PreconditionFailed("1"), Transient("2")], "2", id="a failed precondition last"),
        pytest.param([PreconditionFailed("1"), PreconditionFailed("2")], "1", id="failed preconditions only"),
        pytest.param([Conflict("1"), Transient("2")], "1", id="a webhook's conflict"),
    ],
)
async def test_first_error_is_raised(errors: list[Exception], raised: str) -> None:
    steps = Steps()
    with pytest.raises((Conflict, Transient, Forbidden), match=raised):
        await run_all(*(steps.step("x", error=error) for error in errors))


async def test_cancellation_cancels_all() -> None:
    steps = Steps()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await run_all(steps.step("a", seconds=5))
    await asyncio.sleep(10)
    assert steps.ended == []


async def test_cancellation_leaves_no_coroutine_unawaited() -> None:
    steps = Steps()
    coroutines = [steps.step(str(number), seconds=5) for number in range(2 * MAX_CONCURRENT)]
    for seconds in (0, 1):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await run_all(*coroutines)
        assert {inspect.getcoroutinestate(coroutine) for coroutine in coroutines} == {inspect.CORO_CLOSED}
        coroutines = [steps.step(str(number), seconds=5) for number in range(2 * MAX_CONCURRENT)]
    for coroutine in coroutines:
        coroutine.close()
    assert steps.ended == []
