"""engine.py runs the phase; repository.py keeps the objects in later phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.phases import PhaseName
from upgrade_manager.pipeline.outcome import Phase
from upgrade_manager.pipeline.phases import repository

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult


class RepoCreate(Phase):
    """Creates the Deployment and the Service that serve the ISO's content inside the cluster."""

    name = PhaseName.REPO_CREATE
    activity = "Creating the upgrade repository"

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Create the Deployment and the Service, then wait until they are ready."""
        return await repository.ensure_image(ctx) or await repository.serve(ctx)
