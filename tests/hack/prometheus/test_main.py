"""The download of Prometheus, by an apt-get and a dpkg-deb that a test defines."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hack.prometheus.__main__ import provision
from hack.prometheus.programs import find

if TYPE_CHECKING:
    from collections.abc import Mapping

DOWNLOAD = 'echo "$@" >>"$HOME/calls"; touch prometheus_2.deb'
#: Its arguments are --extract, the package and the folder.
UNPACK = 'mkdir -p "$3/usr/bin"; cd "$3/usr/bin"; touch prometheus promtool; chmod +x prometheus promtool'


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """Return an environment with an empty home and no programs but those of the shell."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    for name in ("sh", "touch", "mkdir", "chmod"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}


def program(environ: Mapping[str, str], name: str, script: str) -> None:
    path = Path(environ["PATH"], name)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)


def test_package_is_downloaded_once(environ: Mapping[str, str], tmp_path: Path) -> None:
    program(environ, "apt-get", DOWNLOAD)
    program(environ, "dpkg-deb", UNPACK)
    programs = provision(environ)
    assert provision(environ) == find(environ) == programs
    assert str(programs.promtool).startswith(str(tmp_path / ".cache"))
    assert (tmp_path / "calls").read_text() == "--quiet download prometheus\n"
    assert [path.name for path in programs.promtool.parents[3].iterdir()] == [programs.promtool.parents[2].name]
