"""engine.py runs the phase; release/release_file.py parses the release file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.phases import PhaseName
from upgrade_manager.pipeline.outcome import Completed, Phase
from upgrade_manager.pipeline.phases import iso_checksums, repository
from upgrade_manager.release.errors import NOT_A_RELEASE, BadRepository, Unreachable
from upgrade_manager.release.repository_client import read_file, shown
from upgrade_manager.resources.repository import RELEASE_FILE, RELEASE_PATH

if TYPE_CHECKING:
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult


class MetadataPopulate(Phase):
    """Lets a Job compute checksums of the ISO's files, and reads the new release's component versions."""

    name = PhaseName.METADATA_POPULATE
    activity = "Reading the release's metadata"
    reads_repository = True

    def initial_message(self, ctx: ReconcileContext) -> str:
        """Name the file that is read."""
        return f"Reading {shown(ctx.repo_url)}{RELEASE_PATH}"

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Wait for the checksums and a response, then read the release file; an error is retried."""
        waiting = await iso_checksums.compute(ctx)
        if waiting is not None:
            return waiting
        from upgrade_manager.release.release_file import SIZE_LIMIT, parse_release  # noqa: PLC0415  # with yaml 1 MiB

        url = ctx.repo_url + RELEASE_PATH
        try:
            body = await read_file(ctx.repository, url, limit=SIZE_LIMIT)
        except Unreachable as error:
            return repository.unreachable(ctx, error, is_error=True)
        if body is None:
            raise BadRepository(f"{shown(url)} does not exist; {NOT_A_RELEASE}")
        iso_checksums.verify_release(ctx, f"/{RELEASE_FILE}", body)
        ctx.status["releaseMetadata"] = parse_release(body, where=shown(url))
        return Completed()
