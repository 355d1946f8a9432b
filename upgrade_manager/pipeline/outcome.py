"""The interface of phases, which the engine calls, and their results: complete, waiting or failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from upgrade_manager.api.phases import PhaseName
    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.pipeline.context import ReconcileContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The phase is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The phase waits for a change; `message` becomes the Progressing condition."""

    message: str
    #: The waits of the phase, at least one; a wait that takes too long is reported as a blocker.
    waits: tuple[Wait, ...]
    #: Further information, which is written less often; may be empty.
    detail: str = ""
    #: Seconds until the next reconcile, for changes that are not watched.
    after: float | None = None
    #: An error that the reconciler reports and retries: the phase's own, or one beside its work, such as a refused
    #: write of the repository. The finders of `waits` name its cause.
    error: Exception | None = None
    #: Where a pause holds the upgrade, after "holds"; empty while something of it runs.
    held: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The upgrade ends; `message` becomes the Progressing condition."""

    cause: str
    #: The task before a retry, in one sentence; empty if that is to correct the cause.
    advice: str = ""
    #: The field of the spec that has to be another one, which only a new plan can have; empty if it may stay.
    immutable: str = ""
    #: True if no retry can help, but a plan with the same spec.
    is_final: bool = False
    #: The command that shows the log of the failed Job; empty without one.
    log: str = ""
    #: True for an attempt that has not begun.
    is_refusal: bool = False
    #: The node on which it failed; empty if that is not one node.
    node: str = ""

    @property
    def message(self) -> str:
        """The cause and the advice, with the command at the end."""
        log = f"Log: {self.log}" if self.log else ""
        return ". ".join(filter(None, (self.cause.rstrip("."), self.advice, log)))


PhaseResult: TypeAlias = Completed | Waiting | Failed


class Phase:
    """One phase of the upgrade. The engine calls `enter`, then `run` until it completes, then `exit`.

    Each method is idempotent and may be cancelled at any await. A method may raise `KubeError` and `RetryError`, which
    the reconciler retries.
    """

    name: PhaseName
    #: The Progressing message until the first `run` returns.
    activity: str
    #: The upgrade repository is ensured before each `run` and `exit`, except the `exit` of the last phase.
    reads_repository = False

    def initial_message(self, ctx: ReconcileContext) -> str:
        """Return `activity`, or a more specific message."""
        _ = ctx
        return self.activity

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Check preconditions and record state, before the phase becomes the current one."""

    async def check_again(self, ctx: ReconcileContext) -> PhaseResult:
        """Check what may have changed since the failure, before a new attempt."""
        _ = ctx
        return Completed()

    async def resume(self, ctx: ReconcileContext) -> Failed | None:
        """Enter the phase again at the begin of a new attempt of the plan, which has failed in it."""
        return await self.enter(ctx)

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Advance the phase; called on every reconcile until it returns Completed or Failed."""
        raise NotImplementedError

    async def exit(self, ctx: ReconcileContext) -> Waiting | Failed | None:
        """Finish the phase before the next one is entered; called until it returns None.

        Call `ctx.persist()` before acting, so that the completion is recorded.
        """
