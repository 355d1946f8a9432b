"""systemctl: a drop-in file counts after a reload, and for a unit after its restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.host.host_programs import Output

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hack.host.state import HostState

_UNITS = "run/systemd/system"


def systemctl(tree: Path, state: HostState, arguments: Sequence[str]) -> Output:
    """Run one command."""
    match list(arguments):
        case ["daemon-reload"]:
            state.loaded_drop_ins = sorted(str(path.relative_to(tree)) for path in (tree / _UNITS).glob("*.d/*.conf"))
        case ["restart", unit]:
            state.unit_drop_ins[unit] = [path for path in state.loaded_drop_ins if f"/{unit}.d/" in path]
        case ["show", "--property=ActiveState", "--value", unit]:
            return Output(status=0, stdout="active\n" if unit in state.unit_drop_ins else "inactive\n")
        case _:
            return Output(status=1, stderr=f"Unknown command verb {arguments[0]}.")
    return Output(status=0)
