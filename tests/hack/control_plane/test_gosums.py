"""Bringing the pins up to date."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from hack.control_plane.errors import ProvisionError
from hack.control_plane.gosums import refresh_sums
from hack.control_plane.pins import GO_FOLDER, downloaded
from hack.control_plane.progress import Progress
from hack.control_plane.toolchain import Go
from tests.support.fake_go import FakeMachine

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(home=tmp_path, gos={str(tmp_path / "go"): "go1.26"})


@pytest.fixture
def pinned(tmp_path: Path, machine: FakeMachine) -> Path:
    """A copy of hack/control_plane/go, and a place to work."""
    (tmp_path / "work").mkdir()
    shutil.copytree(GO_FOLDER, tmp_path / "pinned")
    assert machine.home == tmp_path
    return tmp_path / "pinned"


def refresh(machine: FakeMachine, pinned: Path) -> None:
    progress = Progress(write=lambda _: None, monotonic=lambda: 0.0)
    go = Go(program=machine.home / "go", environ={}, runner=machine, progress=progress)
    refresh_sums(go, machine.home / "work", pinned=pinned)


class TestRefreshing:
    def test_every_sum_is_written_anew(self, machine: FakeMachine, pinned: Path) -> None:
        refresh(machine, pinned)
        assert (pinned / "kubernetes/go.sum").read_text() == "pinned kubernetes\n"
        assert (pinned / "etcd/go.sum").read_text() == "pinned etcd\n"
        lines = (pinned / "crds/go.sum").read_text().splitlines()
        assert lines == [f"{module.path} {module.version} h1:new" for module in downloaded()]

    def test_the_go_version_follows_the_requirements_and_no_replacement_gets_in(
        self, machine: FakeMachine, pinned: Path
    ) -> None:
        before = (pinned / "kubernetes/go.mod").read_text()
        refresh(machine, pinned)
        assert (pinned / "kubernetes/go.mod").read_text() == before.replace("\ngo 1.2", "\ngo 1.9")

    def test_a_version_that_is_not_to_be_had_changes_nothing(self, machine: FakeMachine, pinned: Path) -> None:
        machine.failing["list"] = "go: go.etcd.io/etcd/server/v3@v3.6.99: unknown revision"
        before = (pinned / "etcd/go.sum").read_text()
        with pytest.raises(ProvisionError, match="unknown revision"):
            refresh(machine, pinned)
        assert (pinned / "etcd/go.sum").read_text() == before
