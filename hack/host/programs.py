"""The host's programs: each reads and changes a simulated host as its real counterpart does."""

from __future__ import annotations

import json
import tarfile
from io import BytesIO
from typing import TYPE_CHECKING

from hack.host.os_programs import OsPrograms
from hack.host.state import HostState
from upgrade_manager.toolkit.host_programs import Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from upgrade_manager.toolkit.host_programs import Call


class SimulatedPrograms:
    """Implements HostPrograms on a tree; `state_file` lies beside the tree."""

    def __init__(self, tree: Path, state_file: Path) -> None:
        self.tree = tree
        self._state_file = state_file
        self.state = HostState.load(state_file)
        self._programs: dict[str, Callable[[Sequence[str], bytes], Awaitable[Output]]] = {
            "ctr": self._ctr,
            "crictl": self._crictl,
            **OsPrograms(tree, self.state).handlers,
        }

    async def run(self, call: Call) -> Output:
        """See HostPrograms; the call is recorded before it takes effect."""
        line = " ".join((call.program, *call.argv[1:]))
        self.state.calls.append(line)
        self.state.save(self._state_file)
        stdin = b"".join([piece async for piece in call.stdin]) if call.stdin is not None else b""
        program = self._programs.get(call.program)
        if program is None:
            return Output(
                status=127, stderr=f"chroot: failed to run command {call.argv[0]!r}: No such file or directory"
            )
        failure = next((text for start, text in self.state.failing.items() if line.startswith(start)), None)
        output = await program(call.argv[1:], stdin) if failure is None else Output(status=1, stderr=failure)
        self.state.save(self._state_file)
        return output

    async def _ctr(self, arguments: Sequence[str], stdin: bytes) -> Output:
        match arguments[-2:]:
            case ["list", "--quiet"]:
                return Output(status=0, stdout="".join(f"{image}\n" for image in self.state.images))
            case ["import", "-"]:
                return self._import(stdin)
        return Output(status=1, stderr=f"ctr: unknown arguments {arguments}")

    def _import(self, archive: bytes) -> Output:
        """Import the images that the archive's manifest.json names, as `docker save` writes it."""
        try:
            with tarfile.open(fileobj=BytesIO(archive)) as content:
                manifest = content.extractfile("manifest.json")
                tags = [tag for image in json.load(manifest or BytesIO(b"[]")) for tag in image["RepoTags"]]
        except (tarfile.TarError, KeyError, ValueError) as error:
            return Output(status=1, stderr=f"ctr: unrecognized image format: {error}")
        self.state.images = sorted({*self.state.images, *tags})
        return Output(status=0, stdout="".join(f"unpacking {tag}...done\n" for tag in tags))

    async def _crictl(self, arguments: Sequence[str], _: bytes) -> Output:
        match list(arguments):
            case ["rmi", reference] if reference in self.state.images:
                self.state.images.remove(reference)
                return Output(status=0, stdout=f"Deleted: {reference}\n")
            case ["rmi", reference]:
                return Output(status=1, stderr=f'level=fatal msg="no such image {reference}"')
        return Output(status=1, stderr=f"crictl: unknown arguments {arguments}")
