from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.phases import PhaseName
from upgrade_manager.pipeline.errors import BadRepository
from upgrade_manager.pipeline.phases.base import Completed, Phase
from upgrade_manager.pipeline.release import SIZE_LIMIT, parse_release
from upgrade_manager.pipeline.repository_client import read_file, shown
from upgrade_manager.resources.repository import RELEASE_PATH

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult


class MetadataPopulate(Phase):
    """Reads the new release's component versions from the repository."""

    name = PhaseName.METADATA_POPULATE
    activity = "Reading the release's metadata"
    reads_repository = True

    def initial_message(self, ctx: ReconcileContext) -> str:
        """Name the file that is read."""
        return f"Reading {shown(ctx.repo_url)}{RELEASE_PATH}"

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Read the release file; an error is raised and retried."""
        url = ctx.repo_url + RELEASE_PATH
        body = await read_file(ctx.repository, url, limit=SIZE_LIMIT)
        if body is None:
            raise BadRepository(f"{shown(url)} does not exist; the ISO is corrupt or not a Harvester release")
        ctx.status["releaseMetadata"] = parse_release(body, where=shown(url))
        return Completed()
