"""RKE2's packaged manifest of rke2-multus on a management host: staged at each start, and applied unless it is skipped.

k3s-io/k3s v1.35 pkg/deploy/controller.go, `listFilesIn`: a file is ignored beside which its name with `.skip` exists.
Guess: every release of RKE2 has another manifest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = "var/lib/rancher/rke2/server/manifests"
_NAME = "rke2-multus.yaml"


def stage(root: Path, kubernetes: str) -> None:
    """Write the manifest of this version of RKE2."""
    folder = root / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _NAME).write_text(f"chart of {kubernetes}\n", encoding="utf-8")


def is_skipped(root: Path) -> bool:
    """Report whether RKE2 ignores the manifest."""
    return _skip(root).exists()


def skip(root: Path) -> None:
    """Place the file in an existing folder, unless there is one."""
    if (root / _FOLDER).is_dir() and not _skip(root).exists():
        _skip(root).write_text("harvester-upgrade-manager\n", encoding="utf-8")


def unskip(root: Path) -> None:
    """Remove the file of an upgrade; a user's stays."""
    if is_skipped(root) and _skip(root).read_text(encoding="utf-8") == "harvester-upgrade-manager\n":
        _skip(root).unlink()


def _skip(root: Path) -> Path:
    return root / _FOLDER / f"{_NAME}.skip"
