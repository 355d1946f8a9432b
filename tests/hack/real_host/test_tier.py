"""The tier `host` on a machine without its parts, and the other tiers without its tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STORIES = "tests/host/test_upgrade.py"


def run(tier: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the stories of one file where no program is found."""
    argv = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder}/stories", "--tier", tier, STORIES]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(  # noqa: S603  # our own tests
        [sys.executable, *argv],
        cwd=ROOT,
        env=environ | {"PATH": str(folder), "ELEMENTAL": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.full
@pytest.mark.real_loop
def test_stories_without_their_parts_are_skipped_with_a_reason(tmp_path: Path) -> None:
    ended = run("host", tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert "3 skipped" in ended.stdout
    reason = "programs are missing: run" if os.getuid() == 0 else "made by root: run the tier as root"
    assert ended.stdout.count(reason) > 0


def test_stories_are_no_part_of_ci() -> None:
    assert "test-host" not in (ROOT / ".ci/run").read_text()


@pytest.mark.full
@pytest.mark.real_loop
@pytest.mark.parametrize("tier", ["full", "image"])
def test_stories_are_in_no_other_tier(tmp_path: Path, tier: str) -> None:
    ended = run(tier, tmp_path)
    assert "3 deselected" in ended.stdout, ended.stdout + ended.stderr
