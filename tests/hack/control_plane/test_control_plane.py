"""The control plane as processes: failed starts, restarts and stops."""

from __future__ import annotations

import os
import signal
import tempfile
from typing import TYPE_CHECKING

import pytest

from hack.control_plane import control_plane
from hack.control_plane.assets import Assets, find_assets
from hack.control_plane.control_plane import (
    API_SERVER,
    CONTROLLERS,
    ControlPlane,
    ControlPlaneError,
)
from tests.support.programs.processes import becomes_true, program_of, started_with

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which control planes make theirs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def fake(folder: Path, script: str) -> Assets:
    """Return programs that run a script; none without a script."""
    programs = folder / "programs"
    programs.mkdir()
    if script:
        (programs / "etcd").write_text(f"#!/bin/sh\n{script}\n")
        (programs / "etcd").chmod(0o755)
    return Assets(programs, folder / "crds")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("", "etcd cannot be started: .*/programs/etcd: No such file or directory", id="missing"),
        pytest.param(
            'echo early; echo one; echo two; echo "no space left on device" >&2; exit 2',
            "etcd ended at once: one / two / no space left on device$",
            id="with a reason",
        ),
    ],
)
def test_failed_start_is_one_line_and_leaves_nothing(temporary: Path, script: str, message: str) -> None:
    plane = ControlPlane(fake(temporary, script))
    with pytest.raises(ControlPlaneError, match=message) as raised, plane:
        pass
    assert "\n" not in str(raised.value)
    assert [entry.name for entry in temporary.iterdir()] == ["programs"]
    assert started_with(str(plane.folder)) == []


def test_process_that_never_becomes_ready_is_killed(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_plane, "_READY_TIMEOUT", 0.3)
    plane = ControlPlane(fake(temporary, "echo waiting for a quorum; exec sleep 600"))
    with pytest.raises(ControlPlaneError, match=r"etcd is not ready after 0.3 s: waiting for a quorum$"), plane:
        pass
    assert started_with(str(plane.folder)) == []
    assert [entry.name for entry in temporary.iterdir()] == ["programs"]


@pytest.fixture
def plane(temporary: Path) -> Iterator[ControlPlane]:
    _ = temporary
    with ControlPlane(find_assets(os.environ)) as plane:
        yield plane


@pytest.mark.assets
def test_unexpected_exit_is_reported_and_a_kill_is_not(plane: ControlPlane) -> None:
    plane.kill(API_SERVER)
    plane.check()
    plane.start(API_SERVER)
    plane.check()
    (api_server,) = (pid for pid in started_with(str(plane.folder)) if program_of(pid) == API_SERVER)
    os.kill(api_server, signal.SIGKILL)
    errors: list[str] = []

    def reported() -> bool:
        try:
            plane.check()
        except ControlPlaneError as error:
            errors.append(str(error))
        return bool(errors)

    assert becomes_true(reported)
    assert errors[0].startswith("kube-apiserver has ended (signal 9); start again: ")


@pytest.mark.assets
def test_stop_leaves_no_process_and_no_folder(temporary: Path) -> None:
    with ControlPlane(find_assets(os.environ)) as plane:
        for name in CONTROLLERS:
            plane.start(name)
        assert len(started_with(str(plane.folder))) == 6
    assert started_with(str(plane.folder)) == []
    assert list(temporary.iterdir()) == []
