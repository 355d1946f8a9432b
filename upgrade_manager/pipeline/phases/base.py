from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.api.phases import PhaseName
    from upgrade_manager.pipeline.context import ReconcileContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The phase has reached its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Nothing to do until something that is watched changes; `message` says what, for the Progressing condition."""

    message: str
    #: What else is known of it and decides nothing, so that it need not be on record at once; may be empty.
    detail: str = ""
    #: Seconds after which to look again at something that cannot be watched; None where it is watched.
    after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The upgrade cannot go on; `cause` is its last word to the user."""

    cause: str


PhaseResult = Completed | Waiting | Failed


class Phase:
    """One step of the upgrade, for the engine; a subclass says what is special about it.

    Each of the three may be cut off at any await and run again from its start, with the same outcome. Errors that are
    worth another try are raised: `KubeError`, `RetryError`.
    """

    name: PhaseName

    def initial_message(self, ctx: ReconcileContext) -> str:
        """What is waited for until the first look has told more: on record only where that look fails."""
        _ = ctx
        return f"waiting for phase {self.name}: nothing is known yet"

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Once, before the active value is recorded: what must hold, or be remembered, before the phase begins."""

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Again and again until it is completed or failed."""
        raise NotImplementedError

    async def exit(self, ctx: ReconcileContext) -> Waiting | None:
        """Once, before the next phase is entered; one that acts calls `ctx.persist()` first, to record the end.

        What still has to come to an end by then is waited for, and asked about again.
        """
