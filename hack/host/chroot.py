"""`chroot ROOT PROGRAM ARGUMENTS…` for a simulated host, first on the PATH of its containers."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hack.host.programs import SimulatedPrograms
from upgrade_manager.toolkit.host.host_programs import Call

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Beside the tree.
STATE = "state.json"
_PIECE = 1024 * 1024


def _input() -> Iterator[bytes]:
    while piece := sys.stdin.buffer.read(_PIECE):
        yield piece


def main() -> int:
    """Run the program and return its exit status."""
    root, *argv = sys.argv[1:]
    programs = SimulatedPrograms(Path(root), Path(root).parent / STATE)
    environment = {name: value for name, value in os.environ.items() if name != "PATH"}
    call = Call(argv=tuple(argv), timeout=0, environment=environment, stdin=_input())
    output = asyncio.run(programs.run(call))
    sys.stdout.write(output.stdout)
    sys.stderr.write(output.stderr)
    return output.status


if __name__ == "__main__":
    sys.exit(main())
