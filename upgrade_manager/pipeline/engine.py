"""The upgrade as a table of phases, and the engine that walks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.phases import PhaseName, phase_of
from upgrade_manager.pipeline.errors import RetryError
from upgrade_manager.pipeline.phases.base import Completed
from upgrade_manager.pipeline.phases.cluster_upgrade import ClusterUpgrade
from upgrade_manager.pipeline.phases.image_cleanup import ImageCleanup
from upgrade_manager.pipeline.phases.image_preload import ImagePreload
from upgrade_manager.pipeline.phases.initialize import Initialize
from upgrade_manager.pipeline.phases.iso_download import ISODownload
from upgrade_manager.pipeline.phases.metadata_populate import MetadataPopulate
from upgrade_manager.pipeline.phases.node_upgrade import NodeUpgrade
from upgrade_manager.pipeline.phases.repo_create import RepoCreate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import Phase, PhaseResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One phase of the upgrade."""

    name: PhaseName
    phase: Phase


PIPELINE: tuple[Row, ...] = (
    Row(name=PhaseName.INITIALIZE, phase=Initialize()),
    Row(name=PhaseName.ISO_DOWNLOAD, phase=ISODownload()),
    Row(name=PhaseName.REPO_CREATE, phase=RepoCreate()),
    Row(name=PhaseName.METADATA_POPULATE, phase=MetadataPopulate()),
    Row(name=PhaseName.IMAGE_PRELOAD, phase=ImagePreload()),
    Row(name=PhaseName.CLUSTER_UPGRADE, phase=ClusterUpgrade()),
    Row(name=PhaseName.NODE_UPGRADE, phase=NodeUpgrade()),
    Row(name=PhaseName.IMAGE_CLEANUP, phase=ImageCleanup()),
)


class Engine:
    """Walks the table for one plan, as far as it goes without waiting.

    What becomes known in one walk is written together: phases that have nothing to wait for cost no write of their own.
    A phase that must not act before something is on record calls `ctx.persist()` itself. Where a walk is cut off, the
    next one starts at the last recorded phase, and every step does again what it may have done already.
    """

    def __init__(self, table: Sequence[Row]) -> None:
        self._table = tuple(table)

    async def advance(self, ctx: ReconcileContext) -> PhaseResult:
        """Walk on from the recorded phase: Completed after the last phase, Waiting, or Failed."""
        while True:
            row = self._row(ctx.status.phase)
            if ctx.status.phase == row.name.active:
                outcome = await row.phase.run(ctx)
                if not isinstance(outcome, Completed):
                    return outcome
                ctx.status.record(row.name.completed)
                ctx.status.waiting(_what_follows(ctx, self._following(row)))
            following = self._following(row)
            unfinished = await row.phase.exit(ctx)
            if unfinished is not None:
                return unfinished
            if following is None:
                return Completed()
            refused = await following.phase.enter(ctx)
            if refused is not None:
                return refused
            ctx.status.record(following.name.active)
            ctx.status.waiting(following.phase.initial_message(ctx))

    def initial_message(self, ctx: ReconcileContext) -> str:
        """What is waited for at the beginning of the recorded phase."""
        return self._row(ctx.status.phase).phase.initial_message(ctx)

    def _row(self, value: str) -> Row:
        phase = phase_of(value)
        for row in self._table:
            if row.name is phase:
                return row
        raise RetryError(f"this version of the manager does not know the phase {value}; run the version that wrote it")

    def _following(self, row: Row) -> Row | None:
        rest = self._table[self._table.index(row) + 1 :]
        return rest[0] if rest else None


def _what_follows(ctx: ReconcileContext, following: Row | None) -> str:
    if following is None:
        return f"waiting for the objects that UpgradePlan {ctx.owner.name} made to be removed: the upgrade is done"
    return f"waiting for phase {following.name} to begin"
