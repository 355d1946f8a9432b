"""The state of a simulated host that is not a file in its tree, kept in a file beside the tree."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True, kw_only=True)
class HostState:
    """What the host's services know."""

    #: References in containerd.
    images: list[str] = field(default_factory=list)
    #: The operating system that the next boot starts; empty for the running one.
    next_os: str = ""
    #: The Pod whose success reboots the host; empty for none.
    reboot_after: str = ""
    #: Sources by mount point.
    mounts: dict[str, str] = field(default_factory=dict)
    #: The programs that were called, in order, as one line each.
    calls: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> HostState:
        """Read the state; a new host's where the file does not exist."""
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()

    def save(self, path: Path) -> None:
        """Write the state."""
        partial = path.with_suffix(".new")
        partial.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        partial.replace(path)
