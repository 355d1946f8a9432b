"""The download of Prometheus, by an apt-get and a dpkg-deb that a test defines."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hack.control_plane.assets import AssetsError
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


def test_lists_are_updated_where_they_lack_the_package(
    environ: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    updated = '[ "$2" = update ] && exec touch "$HOME/updated"; [ -e "$HOME/updated" ] || exit 100'
    program(environ, "apt-get", f"{updated}\n{DOWNLOAD}")
    program(environ, "dpkg-deb", UNPACK)
    assert provision(environ).prometheus.exists()
    assert (tmp_path / "updated").exists()


def test_programs_on_the_path_are_used(environ: Mapping[str, str]) -> None:
    for name in ("prometheus", "promtool"):
        program(environ, name, "true")
    assert str(provision(environ).prometheus) == f"{environ['PATH']}/prometheus"


@pytest.mark.parametrize(
    ("apt_get", "message"),
    [
        pytest.param("", "has no apt-get: install Prometheus", id="another distribution"),
        pytest.param("echo no network >&2; exit 100", "failed: no network. Else install Prometheus", id="no network"),
    ],
)
def test_failure_is_one_line_with_a_remedy(
    environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, apt_get: str, message: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    if apt_get:
        program(environ, "apt-get", apt_get)
    with pytest.raises(AssetsError, match=message):
        provision(environ)
    with pytest.raises(AssetsError, match="run `make prometheus`"):
        find(environ)
