"""The view of a healthy upgrade for a user; the listings in tests/golden are documentation."""

from __future__ import annotations

import pytest

from tests.support.managers import upgrade_transcript


@pytest.mark.rule(
    "api: the phases have a fixed order",
    "api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for",
    "api: accepted: Degraded=False (ReconcileSuccess)",
    "pipeline: success records the event UpgradeSucceeded",
)
@pytest.mark.parametrize("entry", upgrade_transcript.SPECS)
@pytest.mark.thin
def test_healthy_upgrade_matches_the_listing(entry: str) -> None:
    assert upgrade_transcript.text(entry) == upgrade_transcript.path(entry).read_text(), (
        "if that is meant: python -m tests.support.managers.upgrade_transcript"
    )


@pytest.mark.rule(
    "api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for",
    "api: waiting records no event, and a healthy upgrade records no Warning",
)
@pytest.mark.parametrize("entry", upgrade_transcript.SPECS)
def test_listing_has_no_warning_and_names_every_object(entry: str) -> None:
    lines = upgrade_transcript.path(entry).read_text().splitlines()
    waits = [line.split(")", 1)[1].strip() for line in lines if "Progressing=True" in line]
    assert not any(line.split()[2:4] == ["event", "Warning"] for line in lines)
    assert waits
    for wait in waits:
        assert any(kind in wait for kind in upgrade_transcript.NAMED), wait
