from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.random_runs.randomness import Highest, Lowest
from tests.support.toolkit.toolkit import Steps
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Forbidden, KubeError, Transient
from upgrade_manager.release.migrations.row import Row
from upgrade_manager.release.migrations.v1_7_to_v1_8 import FEATURES
from upgrade_manager.toolkit.run.context import ToolkitContext
from upgrade_manager.toolkit.run.errors import BadEnvironment, ProgramFailed, StepFailed, StepTimedOut
from upgrade_manager.toolkit.run.steps import Step, run_steps


@dataclass(slots=True)
class _Effect:
    """An effect that needs some actions, or some time."""

    actions_needed: int = 1
    seconds_needed: float = 0.0
    errors: list[Exception] = field(default_factory=list)
    actions: int = 0

    async def missing(self, _: ToolkitContext) -> str:
        if self.actions < self.actions_needed or loop_time() < self.seconds_needed:
            return f"{self.actions} of {self.actions_needed}"
        return ""

    async def act(self, _: ToolkitContext) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.actions += 1

    def step(self, name: str = "step", **options: object) -> Step:
        return Step(name=name, **{"timeout": 60.0, "missing": self.missing, "act": self.act} | options)  # type: ignore[arg-type]


async def _run(*steps: Step, random: Random | None = None) -> Steps:
    progress = Steps()
    context = cast("ToolkitContext", SimpleNamespace(random=random or Lowest()))
    await run_steps(steps, context, progress)
    return progress


async def test_step_acts_once_and_waits_for_its_effect() -> None:
    effect = _Effect(seconds_needed=12)
    progress = await _run(effect.step())
    assert effect.actions == 1
    assert progress.waits == ["step: 1 of 1"] * 3


async def test_effect_has_to_last() -> None:
    effect, flaps = _Effect(actions_needed=0), iter([False, False, True])

    async def missing(context: ToolkitContext) -> str:
        return "it is unstable" if next(flaps, False) else await effect.missing(context)

    progress = await _run(effect.step(missing=missing, act=None, lasts=14.0))
    assert (
        progress.waits
        == ["step: it has to last 14 s"] * 2 + ["step: it is unstable"] + ["step: it has to last 14 s"] * 3
    )
    assert progress.lines == ["1/1 step"]


async def test_effect_that_exists_but_is_new_causes_no_act() -> None:
    effect = _Effect(actions_needed=0)
    progress = await _run(effect.step(lasts=4.0, repeats=True))
    assert (effect.actions, len(progress.waits)) == (0, 1)


async def test_error_begins_the_time_again() -> None:
    errors = iter([None, Transient("API server is away")])

    async def missing(_: ToolkitContext) -> str:
        if (error := next(errors, None)) is not None:
            raise error
        return ""

    progress = await _run(_Effect().step(missing=missing, act=None, lasts=4.0))
    assert [wait.partition(": ")[2] for wait in progress.waits] == [
        "it has to last 4 s",
        "API server is away",
        "it has to last 4 s",
    ]


async def test_optional_step_does_not_fail() -> None:
    late, last = _Effect(seconds_needed=1000), _Effect()
    await _run(late.step("late", act=None, optional=True, timeout=60.0), last.step("last"))
    assert (loop_time(), last.actions) == (60, 1)


async def test_optional_step_reports_what_it_waited_for() -> None:
    late, last, causes = _Effect(seconds_needed=1000), _Effect(), list[str]()

    async def failed(_: ToolkitContext, cause: str) -> None:
        causes.append(cause)

    await _run(late.step("late", act=None, optional=True, failed=failed, timeout=60.0), last.step("last"))
    assert (causes, last.actions) == (["late: not done after 1 min: 0 of 1"], 1)


async def test_existing_effect_is_skipped() -> None:
    effect = _Effect(actions_needed=0)
    assert (await _run(effect.step())).lines == ["skipped step"]
    assert effect.actions == 0


async def test_step_without_observable_effect_acts_once_in_each_run() -> None:
    effect = _Effect()
    for _ in range(2):
        await _run(effect.step(missing=None))
    assert effect.actions == 2


async def test_repeating_step_acts_before_each_check() -> None:
    effect = _Effect(actions_needed=3)
    progress = await _run(effect.step(repeats=True))
    assert effect.actions == 3
    assert len(progress.waits) == 2


async def test_transient_error_is_retried_within_the_timeout() -> None:
    effect = _Effect(errors=[Transient("API server is away")])
    progress = await _run(effect.step())
    assert progress.waits == ["step: API server is away"]
    assert effect.actions == 1


@pytest.mark.parametrize(("random", "seconds"), [(Lowest(), 20.0), (Highest(), 22.0)])
async def test_polls_and_retries_have_jitter(random: Random, seconds: float) -> None:
    effect = _Effect(errors=[Transient("API server is away")], actions_needed=2)
    began = loop_time()
    await _run(effect.step(poll=10.0, repeats=True), random=random)
    assert loop_time() - began == pytest.approx(seconds)


@pytest.mark.parametrize("error", [StepFailed("no space"), ProgramFailed("ctr returned 1"), Forbidden("forbidden")])
async def test_other_error_ends_the_command(error: StepFailed | KubeError) -> None:
    later = _Effect()
    with pytest.raises(StepFailed, match=f"^import: {error}$"):
        await _run(_Effect(errors=[error]).step("import"), later.step())
    assert later.actions == 0


async def test_timeout_names_what_is_missing() -> None:
    with pytest.raises(StepTimedOut, match=r"^stop-vms: not done after 30 min: 1 of 2$"):
        await _run(_Effect(actions_needed=2).step("stop-vms", timeout=1800.0))


async def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(StepFailed("it failed"), id="failed"),
        pytest.param(BadEnvironment("the program helm is not on PATH"), id="environment"),
        pytest.param(ZeroDivisionError("division"), id="bug"),
    ],
)
async def test_steps_that_run_always_follow_any_error(error: Exception) -> None:
    skipped, restored = _Effect(), _Effect()
    failing = Step(name="failing", timeout=60, act=lambda _: _raise(error))
    with pytest.raises(type(error), match=str(error)):
        await _run(
            failing,
            skipped.step(),
            restored.step(always=True),
            _Effect(errors=[StepFailed("another")]).step("last", always=True),
        )
    assert (skipped.actions, restored.actions) == (0, 1)


async def test_steps_that_run_always_follow_a_signal() -> None:
    waiting, skipped, restored = _Effect(seconds_needed=1e9), _Effect(), _Effect()
    steps = (waiting.step(timeout=1e9), skipped.step(), restored.step(always=True))
    task = asyncio.create_task(_run(*steps))
    await asyncio.sleep(100)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (skipped.actions, restored.actions) == (0, 1)


async def test_steps_after_a_signal_are_limited_together() -> None:
    slow = [_Effect(seconds_needed=1e9) for _ in range(3)]
    task = asyncio.create_task(_run(*(effect.step(timeout=1e9, always=True) for effect in slow)))
    await asyncio.sleep(100)
    task.cancel()
    began = loop_time()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert loop_time() - began == 15
    assert [effect.actions for effect in slow] == [1, 1, 1]


async def test_failure_is_reported_once_before_the_command_ends() -> None:
    reported: list[str] = []

    async def report(_: ToolkitContext, cause: str) -> None:
        reported.append(cause)

    with pytest.raises(StepFailed, match=r"^first: broken$"):
        await _run(_Effect(errors=[StepFailed("broken")]).step("first", failed=report))
    await _run(_Effect(errors=[Transient("API server is away")]).step(failed=report))
    assert reported == ["first: broken"]


@pytest.mark.parametrize("has", [True, False])
async def test_step_of_a_row_is_skipped_in_other_upgrades(*, has: bool) -> None:
    class Rows:
        async def has(self, row: Row) -> bool:
            assert row is FEATURES
            return has

    effect, progress = _Effect(), Steps()
    context = cast("ToolkitContext", SimpleNamespace(random=Lowest(), migration=Rows()))
    await run_steps([effect.step(row=FEATURES)], context, progress)
    assert effect.actions == has
    assert progress.lines == (["1/1 step"] if has else ["skipped step"])
