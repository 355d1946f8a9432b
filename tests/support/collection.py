"""Which tests there are, as pytest collects them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
#: Seconds; a whole collection takes ten, and many more on a machine that is busy with all tests.
_PATIENCE = 240


def collected(files: Iterable[str], *, root: Path = ROOT) -> list[str]:
    """The tests in these files, by name; of a file that is missing or broken there are none."""
    there = sorted(file for file in files if (root / file).is_file())
    if not there:
        return []
    options = ["--collect-only", "-q", "--continue-on-collection-errors", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *options, *there]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=_PATIENCE)  # noqa: S603  # ours
    return [line for line in shown.stdout.splitlines() if line.split("::")[0] in there]
