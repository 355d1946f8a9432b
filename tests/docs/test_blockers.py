"""The table of blockers in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from tests.recipes.places import usual_minutes
from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.keys import Component
from upgrade_manager.nodes.expected_times import USUAL

ROOT = Path(__file__).parents[2]


def test_table_lists_every_reason() -> None:
    text = (ROOT / "docs" / "blockers.md").read_text()
    listed = set(re.findall(r"^\| ([A-Z][A-Za-z]+) \|", text, flags=re.MULTILINE))
    assert set(BlockerReason) <= listed


def test_usual_times_of_all_jobs_are_those_of_the_manager() -> None:
    # The Jobs of that component have the times of their types.
    jobs = {str(work): seconds / 60 for work, seconds in USUAL.items() if work is not Component.NODE_UPGRADE}
    assert usual_minutes() == jobs
