"""Texts do not count what the tables of the sources count."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COUNT = re.compile(r"\b(?:[6-9]|1\d|six|seven|eight|nine|ten|eleven|twelve)\s+(?:phases|components|blocker reasons)\b")


def test_no_text_counts_phases_components_or_reasons() -> None:
    """Decisions and released versions in CHANGELOG are records, which stay as they are."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    sources = [*(ROOT / "upgrade_manager").rglob("*.py"), *(ROOT / "tests/rules").glob("*.txt")]
    paths = [path for path in (*documents, *sources) if path.name != "CHANGELOG.md"]
    found = [f"{path.relative_to(ROOT)}: {match}" for path in paths for match in COUNT.findall(path.read_text())]
    assert found == []
    assert COUNT.search("through eight\nphases")
