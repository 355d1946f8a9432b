"""The upgrade as a table of phases, and the engine that walks it.

reconciler.py calls `advance` in each reconcile; reconciler_factory.py creates the phases.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from upgrade_manager.api.phases import PhaseName, phase_of
from upgrade_manager.nodes.gate import may_pause
from upgrade_manager.pipeline import holders, pause, write_log
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.holders import Place
from upgrade_manager.pipeline.outcome import Completed, Waiting
from upgrade_manager.pipeline.phases import repository
from upgrade_manager.pipeline.phases.cluster_upgrade import ClusterUpgrade
from upgrade_manager.pipeline.phases.guarded_nodes import GuardedNodeUpgrade
from upgrade_manager.pipeline.phases.image_cleanup import ImageCleanup
from upgrade_manager.pipeline.phases.image_preload import ImagePreload
from upgrade_manager.pipeline.phases.initialize import Initialize
from upgrade_manager.pipeline.phases.iso_download import ISODownload
from upgrade_manager.pipeline.phases.metadata_populate import MetadataPopulate
from upgrade_manager.pipeline.phases.repo_create import RepoCreate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import Failed, Phase, PhaseResult


#: In order; each process has its own phases, because NodeUpgrade remembers what it has handled.
PIPELINE: tuple[type[Phase], ...] = (
    Initialize,
    ISODownload,
    RepoCreate,
    MetadataPopulate,
    ImagePreload,
    ClusterUpgrade,
    GuardedNodeUpgrade,
    ImageCleanup,
)


#: The phases before which the table of holders is asked.
_ASKED = {PhaseName.CLUSTER_UPGRADE: Place.CLUSTER_UPGRADE, PhaseName.NODE_UPGRADE: Place.NODE_UPGRADE}


class Engine:
    """Advances one plan through the table of phases, until a phase waits or fails.

    The engine starts at the recorded phase and may be cancelled at any await, because phases are idempotent. The caller
    writes the status; a phase that needs the status written before an action calls `ctx.persist()`.
    """

    def __init__(self, table: Sequence[Phase]) -> None:
        self._table = tuple(table)

    async def advance(self, ctx: ReconcileContext) -> PhaseResult:
        """Run phases until one returns Waiting or Failed; return Completed after the last one."""
        while True:
            phase, following = self._current(ctx)
            # The exit of the last phase reads nothing from the upgrade repository.
            is_over = following is None and ctx.status.phase == phase.name.completed
            left = await repository.ensure(ctx) if phase.reads_repository and not is_over else None
            if ctx.status.phase == phase.name.active:
                result = repository.beside(await phase.run(ctx), left)
                if phase.reads_repository and isinstance(result, Waiting):
                    result = replace(result, waits=(*result.waits, *await repository.waits(ctx, result.waits)))
                if not isinstance(result, Completed):
                    return result
                _record(ctx, phase.name.completed)
                ctx.status.waiting(_next_message(ctx, following))
            unfinished = await phase.exit(ctx)
            if unfinished is not None:
                return repository.beside(unfinished, left)
            if following is None:
                return Completed()
            held = await _held_before(ctx, following.name)
            if held is not None:
                return repository.beside(held, left)
            # Log lines of created objects have the phase that creates the objects.
            write_log.in_phase(following.name.active)
            failed = await following.enter(ctx)
            if failed is not None:
                return failed
            _record(ctx, following.name.active)
            ctx.status.waiting(following.initial_message(ctx))

    async def begin(self, ctx: ReconcileContext) -> None:
        """Enter the first phase, which the caller records; the run of the phase repeats a check that failed."""
        await self._table[0].enter(ctx)

    async def resume(self, ctx: ReconcileContext) -> Failed | None:
        """Enter the phase again in which the plan has failed; a phase that is complete is not repeated."""
        phase, _ = self._current(ctx)
        return await phase.resume(ctx) if ctx.status.phase == phase.name.active else None

    async def check_again(self, ctx: ReconcileContext) -> PhaseResult:
        """Return the result of the checks before a new attempt."""
        return await self._table[0].check_again(ctx)

    def initial_message(self, ctx: ReconcileContext) -> str:
        """Return the Progressing message of the current phase before its first run."""
        phase, _ = self._current(ctx)
        return phase.initial_message(ctx)

    def _current(self, ctx: ReconcileContext) -> tuple[Phase, Phase | None]:
        """Return the recorded phase and the one after it."""
        name = phase_of(ctx.status.phase)
        for phase, following in zip_longest(self._table, self._table[1:]):
            if phase.name is name:
                return phase, following
        raise RetryError(f"unknown phase {ctx.status.phase}; run the manager version that recorded it")


def _record(ctx: ReconcileContext, phase: str) -> None:
    ctx.status.record(phase)
    write_log.in_phase(phase)


def _next_message(ctx: ReconcileContext, following: Phase | None) -> str:
    return f"Starting phase {following.name}" if following else f"Removing the objects of UpgradePlan {ctx.owner.name}"


async def _held_before(ctx: ReconcileContext, phase: PhaseName) -> Waiting | None:
    """Return the wait of a paused plan, or for a holder of the cluster, before the phase."""
    paused = pause.before(ctx, phase) if may_pause(ctx.plan.spec) else None
    if paused is not None or phase not in _ASKED:
        return paused
    return await holders.wait(ctx, _ASKED[phase])
