"""Room on the disks."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from hack.control_plane.disk import check_space, full
from hack.control_plane.errors import ProvisionError

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024 * 1024


class Usage(NamedTuple):
    """What shutil.disk_usage gives."""

    total: int
    used: int
    free: int


@pytest.fixture(autouse=True)
def free(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MiB are free."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, 100 * MIB))


class TestSpace:
    def test_enough_is_enough(self, tmp_path: Path) -> None:
        check_space([(tmp_path / "a", 60), (tmp_path / "b" / "c", 40)])

    def test_folders_on_one_disk_share_it(self, tmp_path: Path) -> None:
        said = f"{tmp_path}/a and {tmp_path}/b/c need about 101 MiB and 100 MiB are free: make room"
        with pytest.raises(ProvisionError, match=said):
            check_space([(tmp_path / "a", 60), (tmp_path / "b" / "c", 41)])

    def test_a_full_disk_names_the_folders_once(self, tmp_path: Path) -> None:
        message = str(full([tmp_path, tmp_path]))
        assert message.count(str(tmp_path)) == 1
