from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from upgrade_manager.toolkit.host.disk_space import RESERVE, free_bytes, require_space
from upgrade_manager.toolkit.run.errors import OutOfSpace

BLOCK = 512


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Give each file system the reserve and 3 MiB, where root has more; return the paths that are read."""
    paths: list[Path] = []

    def statvfs(path: Path) -> SimpleNamespace:
        paths.append(path)
        blocks = (RESERVE + 3 * 1024 * 1024) // BLOCK
        return SimpleNamespace(f_bavail=blocks, f_bfree=blocks * 2, f_frsize=BLOCK, f_bsize=BLOCK * 8)

    monkeypatch.setattr(os, "statvfs", statvfs)
    return paths


def test_space_of_a_missing_path_is_that_of_its_parent(asked: list[Path], tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not/there") == RESERVE + 3 * 1024 * 1024
    assert asked == [tmp_path]


@pytest.mark.usefixtures("asked")
def test_reserve_stays_free(tmp_path: Path) -> None:
    mib = 1024 * 1024
    require_space(tmp_path, 3 * mib, purpose="the import", place="/data")
    text = r"^the import needs 1028 MiB in /data on the host, which has 1027 MiB free\. Free space on the node$"
    with pytest.raises(OutOfSpace, match=text):
        require_space(tmp_path, 3 * mib + 1, purpose="the import", place="/data")


def test_simulated_hosts_have_room_on_a_full_machine(tmp_path: Path) -> None:
    """The tests' conftest simulates the disk, as the demo and the simulated containers do."""
    require_space(tmp_path / "not/there", 50 * RESERVE, purpose="the import", place="/data")
