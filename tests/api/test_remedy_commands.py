"""The line that saves an object before a remedy changes it, in bash."""

from __future__ import annotations

import subprocess
from pathlib import Path

from upgrade_manager.api.remedy import saving


def run(line: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(  # noqa: S603  # the command under test
        ["bash", "-c", line],  # noqa: S607  # found on the PATH
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    return done.returncode, done.stdout


def test_first_save_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    assert run(saving("echo first", "a.yaml"), tmp_path) == (0, "")
    assert run(saving("echo second", "a.yaml"), tmp_path) == (1, "a.yaml exists: move it first\n")
    assert file.read_text() == "first\n"


def test_file_of_a_failed_command_is_replaced(tmp_path: Path) -> None:
    assert run(saving("false", "a.yaml"), tmp_path) == (1, "")
    assert run(saving("echo first", "a.yaml"), tmp_path) == (0, "")
    assert (tmp_path / "a.yaml").read_text() == "first\n"
