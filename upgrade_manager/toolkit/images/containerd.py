"""Images in the host's containerd."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from upgrade_manager.release.image_lists import identities
from upgrade_manager.toolkit.host.host_paths import CONTAINERD_SOCKET, CTR
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.run.background_work import consume, discard

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from upgrade_manager.toolkit.host.host_programs import HostPrograms

_CTR = (CTR, "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", "images")
#: Seconds.
_LIST_TIMEOUT = 120.0
_IMPORT_TIMEOUT = 3600.0


class Images:
    """Lists and imports images."""

    def __init__(self, programs: HostPrograms) -> None:
        self._programs = programs

    async def missing(self, references: Iterable[str]) -> list[str]:
        """Return the references that containerd does not have. Raises StepFailed."""
        call = Call(argv=(*_CTR, "list", "--quiet"), timeout=_LIST_TIMEOUT)
        present: set[str] = set()
        for line in (await run_program(self._programs, call)).stdout.split():
            present |= identities(line)
        return [reference for reference in references if present.isdisjoint(identities(reference))]

    async def load(self, archive: Generator[bytes]) -> None:
        """Import a tar stream; kill ctr if the stream raises. Raises the stream's error, and StepFailed."""
        with closing(archive):
            # Unpacked snapshots take three times the space of the images; containerd unpacks an image when it first
            # starts a container of it.
            call = Call(argv=(*_CTR, "import", "--no-unpack", "-"), timeout=_IMPORT_TIMEOUT, stdin=archive)
            await run_program(self._programs, call)
            # ctr may stop reading after the last entry; only the end of the stream shows that all of it was valid.
            await consume(archive, discard)
