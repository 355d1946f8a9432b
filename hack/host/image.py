"""An unpacked image: its root file system and its configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The parts of an image that a container runtime needs."""

    root: Path
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    #: Numeric user and group.
    user: int
    group: int
    environment: dict[str, str]

    @classmethod
    def load(cls, root: Path, configuration: Path) -> Self:
        """Read the output of `buildah inspect --type image`. Raises OSError, ValueError and KeyError."""
        config: dict[str, Any] = json.loads(configuration.read_text(encoding="utf-8"))["OCIv1"]["config"]
        user, _, group = (config.get("User") or "0").partition(":")
        return cls(
            root=root,
            entrypoint=tuple(config.get("Entrypoint") or ()),
            command=tuple(config.get("Cmd") or ()),
            user=int(user),
            group=int(group or 0),
            environment=dict(entry.split("=", 1) for entry in config.get("Env") or ()),
        )

    def argv(self, container: dict[str, Any]) -> list[str]:
        """Return the command line of a container: its own command and arguments replace the image's."""
        if container.get("command"):
            return [*container["command"], *(container.get("args") or ())]
        return [*self.entrypoint, *(container.get("args") or self.command)]

    def inside(self, path: str) -> str:
        """Return a path with the symbolic links of the root file system resolved, below its root."""
        resolved = ""
        for part in path.strip("/").split("/"):
            link = self.root / resolved.lstrip("/") / part
            target = str(link.readlink()) if link.is_symlink() else part
            resolved = target if target.startswith("/") else f"{resolved}/{target}"
        return resolved
