"""The table of blockers in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from upgrade_manager.api.blockers import BlockerReason

ROOT = Path(__file__).parents[2]


def test_table_lists_every_reason() -> None:
    text = (ROOT / "docs" / "blockers.md").read_text()
    listed = set(re.findall(r"^\| ([A-Z][A-Za-z]+) \|", text, flags=re.MULTILINE))
    assert set(BlockerReason) <= listed
