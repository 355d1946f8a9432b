"""Runs a command's table of steps: each step checks its effect, acts, and waits for its effect.

A Job starts a killed command again. The new run checks the table from the top, skips steps whose effect exists, and
continues with the first step whose effect is missing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Conflict, KubeError, Throttled, Transient
from upgrade_manager.kube.retry import jittered
from upgrade_manager.toolkit.run.errors import StepFailed, StepTimedOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from upgrade_manager.release.migrations.row import Row
    from upgrade_manager.toolkit.run.context import ToolkitContext

_log = structlog.get_logger(__name__)

#: Errors of the Kubernetes API that a retry may mend.
RETRIED = (Conflict, Throttled, Transient)
#: Seconds for the steps that always run, after a signal; of the 30 s that Kubernetes waits a program may take 10 s.
_STOP_TIMEOUT = 15.0


#: Returns the missing part of an effect, in words for users; empty once the effect exists.
Check: TypeAlias = "Callable[[ToolkitContext], Awaitable[str]]"
#: Creates the effect.
Action: TypeAlias = "Callable[[ToolkitContext], Awaitable[None]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One row of a command's table."""

    #: Constant; logs, progress and failures show it.
    name: str
    #: Seconds for the whole step, waits included; None for a step that waits for a user's decision for any time.
    timeout: float | None
    #: Returns the missing part of the effect, in words for users; empty once the effect exists. None for an effect that
    #: cannot be observed, whose idempotent action runs once in each run of the command.
    missing: Check | None = None
    #: Creates the effect; None for a step that only waits.
    act: Action | None = None
    #: Act before each check, until the effect exists.
    repeats: bool = False
    #: Seconds between checks, before the jitter.
    poll: float = 5.0
    #: Seconds for which the effect has to last until the step is done.
    lasts: float = 0.0
    #: Go on with the next step after the timeout, with a warning, once `failed` has its cause.
    optional: bool = False
    #: Run also after an error of an earlier step, which the command still reports, and for a moment after a signal.
    always: bool = False
    #: Receives the cause of a failure, and reports the failure outside the Pod's log.
    failed: Callable[[ToolkitContext, str], Awaitable[None]] | None = None
    #: The row of release/migrations that the step carries out or checks; other upgrades skip the step.
    row: Row | None = None


class Progress(Protocol):
    """Shows users how far a command is."""

    async def started(self, step: str, *, number: int, total: int) -> None:
        """Report a step that begins, unless its effect exists."""
        ...

    def waiting(self, step: str, missing: str) -> None:
        """Report the missing effect for which a step waits; called at each poll."""
        ...

    def ended(self, step: str, *, skipped: bool) -> None:
        """Report a step whose effect exists."""
        ...


async def run_steps(steps: Sequence[Step], context: ToolkitContext, progress: Progress) -> None:
    """Run the steps in order. Raises the first error, most often StepFailed, after the steps that run always.

    A cancellation counts as an error: a Pod that is deleted gets a signal, and its Job may be deleted too.
    """
    failure: BaseException | None = None
    deadline: float | None = None
    for number, step in enumerate(steps, start=1):
        if failure is not None and not step.always:
            continue
        try:
            async with asyncio.timeout_at(deadline):
                await _StepRun(step, context, progress, number=number, total=len(steps)).run()
        except asyncio.CancelledError as error:
            failure, deadline = failure or error, deadline or loop_time() + _STOP_TIMEOUT
        except Exception as error:  # noqa: BLE001  # raised below
            failure = failure or error
            if step.failed is not None:
                await step.failed(context, str(error))
    if failure is not None:
        raise failure


class _StepRun:
    """One step in one run of the command."""

    def __init__(self, step: Step, context: ToolkitContext, progress: Progress, *, number: int, total: int) -> None:
        self._step = step
        self._context = context
        self._progress = progress
        self._number = number
        self._total = total
        self._acted = False
        self._begun = False
        #: The part of the effect that was missing at the last check.
        self._missing = ""
        #: Since when the effect has existed at each check; None while it does not exist.
        self._since: float | None = None

    async def run(self) -> None:
        """Return once the effect exists. Raises StepFailed, whose text begins with the step's name."""
        step = self._step
        try:
            async with asyncio.timeout(step.timeout):
                while not await self._attempt():
                    self._progress.waiting(step.name, self._missing)
                    await asyncio.sleep(jittered(step.poll, self._context.random))
        except TimeoutError as error:
            text = f"{step.name}: not done after {_duration(step.timeout or 0)}: {self._missing or 'no progress'}"
            if not step.optional:
                raise StepTimedOut(text) from error
            _log.warning("the upgrade goes on", step=step.name, missing=self._missing)
            if step.failed is not None:
                await step.failed(self._context, text)
        except StepFailed as error:
            raise type(error)(f"{step.name}: {error}") from error
        except KubeError as error:
            raise StepFailed(f"{step.name}: {error}") from error
        self._progress.ended(step.name, skipped=not self._begun)

    async def _attempt(self) -> bool:
        """Check the effect, act if the effect is missing, and check again; return True once the effect exists."""
        try:
            if await self._is_done():
                return True
            await self._begin()
            exists, may_act = self._since is not None, self._step.repeats or not self._acted
            if self._step.act is None or exists or not may_act:
                return False
            await self._step.act(self._context)
            self._acted = True
            return await self._is_done()
        except RETRIED as error:
            self._missing, self._since = str(error), None
            return False

    async def _is_done(self) -> bool:
        if self._step.row is not None and not await self._context.migration.has(self._step.row):
            return True
        if self._step.missing is None:
            return self._acted
        self._missing = await self._step.missing(self._context)
        if not self._missing:
            self._missing = self._until_it_has_lasted()
        else:
            self._since = None
        return not self._missing

    def _until_it_has_lasted(self) -> str:
        """Return that the effect is too new; empty once it has lasted."""
        self._since = loop_time() if self._since is None else self._since
        too_new = loop_time() - self._since < self._step.lasts
        return f"it has to last {_duration(self._step.lasts)}" if too_new else ""

    async def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            await self._progress.started(self._step.name, number=self._number, total=self._total)


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    return f"{seconds:g} s" if minutes < 1 else f"{minutes:g} min"
