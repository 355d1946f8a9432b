"""The listings in tests/golden that show the writes of this project."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "tests/golden"
#: Net writes of commands and manager, one line each.
WRITES = "writes/*.txt"
#: In the order of the search; the others show waits and programs, too.
_PLACES = (WRITES, "toolkit/*.txt", "three-nodes-by-version.txt")


@cache
def listings() -> dict[str, tuple[str, ...]]:
    """Return the lines of each listing, by its path below tests/golden."""
    paths = [path for place in _PLACES for path in sorted(GOLDEN.glob(place))]
    return {str(path.relative_to(GOLDEN)): tuple(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def shown_in(pattern: str) -> str:
    """Return the first listing with a line that matches; empty if there is none."""
    compiled = re.compile(pattern)
    return next((name for name, lines in listings().items() if any(map(compiled.search, lines))), "")
