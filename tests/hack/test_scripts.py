"""Scripts of hack in a tree whose programs do what a test defines."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: As `timeout` and Ctrl-C do: to the script and its programs. The program waits, as one that is slow to end.
SIGNAL = "#!/bin/sh\ntrap '' {name}\nkill -{name} 0\n"
#: A root file system with the manager's programs, of which `du` finds one byte too many.
PROGRAM = """#!/bin/sh
case "$(basename "$0") $*" in
    "buildah mount "*) echo "$ROOT" ;;
    "buildah run "*os.getuid*) echo 65532 ;;
    "buildah inspect "*) echo '"org.opencontainers.image.revision": "built-on-debian"' ;;
    "buildah push "*) touch "${4#oci-archive:}" ;;
    "du "*) printf '120000001\\t%s\\n' "$ROOT" ;;
esac
"""
PROGRAMS = ("buildah", "mmdebstrap", "ip", "mkfs.ext4", "du")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy the scripts, beside programs that do nothing."""
    shutil.copytree(ROOT / "hack", tmp_path / "hack", ignore=lambda _, names: [n for n in names if n[-3:] != ".sh"])
    for name in ("Dockerfile", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in ("upgrade_manager", "webhook", "files"):
        (tmp_path / folder).mkdir()
    for name in ("python", "helm", "upgrade-manager"):
        write(tmp_path / ".venv/bin" / name, "#!/bin/sh\n")
    for name in PROGRAMS:
        write(tmp_path / "bin" / name, PROGRAM)
    for name in ("chroot", "dash", "env", "sh"):
        write(tmp_path / "root/usr/bin" / name, "")
    for package in ("ca-certificates", "coreutils", "dash", "libc6", "libssl3"):
        write(tmp_path / "root/var/lib/dpkg/status.d" / package, "")
    for folder in ("usr/sbin", "usr/local/bin"):
        (tmp_path / "root" / folder).mkdir(parents=True)
    return tmp_path


def run(tree: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a separate process group, with its temporary files below the tree."""
    places = {"PATH": f"{tree}/bin:{os.environ['PATH']}", "TMPDIR": f"{tree}/files", "ROOT": f"{tree}/root"}
    return subprocess.run(  # noqa: S603  # our own script
        [f"{tree}/hack/{script}", f"{tree}/dist"],
        env=places,
        start_new_session=True,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["TERM", "INT"])
@pytest.mark.parametrize("script", ["build_wheel.sh", "wheel.sh", "images_on_debian.sh"])
def test_interrupted_script_removes_its_files(tree: Path, script: str, name: str) -> None:
    write(tree / ".venv/bin/python", SIGNAL.format(name=name))
    assert run(tree, script).returncode == 143
    assert list((tree / "files").iterdir()) == []


def test_image_above_the_limit_fails_with_both_sizes(tree: Path) -> None:
    ended = run(tree, "images_on_debian.sh")
    message = "the manager's image has 120000001 bytes of files, limit 120000000"
    assert (ended.returncode, ended.stderr.splitlines()[-1:]) == (1, [message])
    assert list((tree / "files").iterdir()) == []
