"""`node checksums`: computes the SHA-256 of the files that Jobs read from the ISO, from the mounted ISO itself.

The termination message is the result. The manager passes the result to the other commands, which check their downloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.checksums import MAX_BYTES, write_checksums
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.release.errors import NOT_A_RELEASE
from upgrade_manager.toolkit.iso.checksums import Checksums, sha256
from upgrade_manager.toolkit.iso.iso_directory import IsoDirectory
from upgrade_manager.toolkit.iso.release_files import BUNDLE, RELEASE, ReleaseFiles
from upgrade_manager.toolkit.os.os_rootfs import SOURCE
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.periodic_report import reporting
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def compute(context: ToolkitContext) -> None:
    """Hash the files, and report the result. Raises StepFailed and KubeError."""
    iso = IsoDirectory(context.iso)
    bundle = await ReleaseFiles(iso, checksums=Checksums({})).bundle()
    archives = [*bundle.common, *bundle.rke2, *bundle.agent]
    required = [RELEASE, BUNDLE, SOURCE, *(archive.archive_path for archive in archives)]
    files: dict[str, str] = {}

    def progress() -> dict[str, str]:
        return {"progress": f"{len(files)} of {len(required) + len(archives)} files"}

    async with reporting("hashing", progress):
        for path in (*required, *(archive.list_path for archive in archives)):
            try:
                files[path] = await sha256(iso.path(path))
            except NotFound as error:
                raise StepFailed(f"{error}; {NOT_A_RELEASE}") from error
            except OSError as error:
                raise StepFailed(f"{path} on the ISO cannot be read: {error.strerror or error}") from error
    context.report(_text(files, required=required))


def _text(files: dict[str, str], *, required: list[str]) -> str:
    """Return all digests, or only the digests of required files if the text is too long. Raises StepFailed."""
    for chosen in (files, {path: files[path] for path in required}):
        text = write_checksums(chosen)
        if len(text.encode()) <= MAX_BYTES:
            return text
    raise StepFailed(f"the checksums of {len(required)} files exceed the {MAX_BYTES} bytes of a termination message")


#: The timeout is less than the Job's deadline, so that the failure names the slow step.
STEPS = (Step(name="compute-checksums", timeout=540, act=compute),)
