"""The host's programs: each reads and changes a simulated host as its real counterpart does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.host.image_programs import ImagePrograms
from hack.host.os_programs import OsPrograms
from hack.host.state import HostState
from hack.host.state_partition import refresh
from upgrade_manager.toolkit.host.host_programs import Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from upgrade_manager.toolkit.host.host_programs import Call


class SimulatedPrograms:
    """Implements HostPrograms on a tree; processes share the state by `state_file`, which lies beside the tree."""

    def __init__(self, tree: Path, state_file: Path | None = None) -> None:
        self.tree = tree
        self._state_file = state_file
        self.state = HostState() if state_file is None else HostState.load(state_file)
        #: Is called with each part of a program that can be killed in between, before the part; what it raises ends it.
        self.stage: Callable[[str], None] = _no_stage
        self._programs: dict[str, Callable[[Sequence[str], bytes], Awaitable[Output]]] = {
            **ImagePrograms(self.state, stage=self._at_stage).handlers,
            **OsPrograms(tree, self.state, stage=self._at_stage).handlers,
        }

    async def run(self, call: Call) -> Output:
        """See HostPrograms; the call is recorded before it takes effect."""
        line = " ".join((call.program, *call.argv[1:]))
        self.state.calls.append(line)
        self._save()
        stdin = b"".join(call.stdin) if call.stdin is not None else b""
        program = self._programs.get(call.program)
        if program is None:
            return Output(
                status=127, stderr=f"chroot: failed to run command {call.argv[0]!r}: No such file or directory"
            )
        failure = next((text for start, text in self.state.failing.items() if line.startswith(start)), None)
        refresh(self.tree)
        try:
            return await program(call.argv[1:], stdin) if failure is None else Output(status=1, stderr=failure)
        finally:
            self._save()

    def _at_stage(self, part: str) -> None:
        self.stage(part)

    def _save(self) -> None:
        if self._state_file is not None:
            self.state.save(self._state_file)


def _no_stage(_: str) -> None:
    """Let the program go on."""
