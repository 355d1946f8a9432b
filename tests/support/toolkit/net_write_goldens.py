"""The listings of net writes in tests/golden/writes."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "golden/writes"


def golden(name: str, lines: list[str]) -> list[str]:
    """Return the kept listing, after writing this one if the environment asks for it."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return kept(name)


def names() -> list[str]:
    """Return the names of all listings."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def kept(name: str) -> list[str]:
    """Return a listing."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
