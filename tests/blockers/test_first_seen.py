from __future__ import annotations

from datetime import UTC, datetime, timedelta

from upgrade_manager.blockers.first_seen import FirstSeen

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER, LATEST = START + timedelta(minutes=1), START + timedelta(minutes=2)


def test_time_is_kept_until_the_value_changes() -> None:
    seen = FirstSeen()
    assert seen.since("k", 1, now=START) == START
    assert seen.since("k", 1, now=LATER) == START
    assert seen.since("k", 2, now=LATER) == LATER
    assert seen.since("other", 2, now=LATEST) == LATEST


def test_known_time_is_that_of_another_process() -> None:
    seen = FirstSeen()
    assert seen.since("k", 1, now=LATER, known=START) == START
    assert seen.since("k", 2, now=LATEST, known=START) == LATEST


def test_value_that_was_true_once_stays_true() -> None:
    seen = FirstSeen()
    assert seen.latched("k", value=False, now=START, known=START) == (False, START)
    assert seen.latched("k", value=True, now=LATER) == (True, LATER)
    assert seen.latched("k", value=False, now=LATEST) == (True, LATER)
    assert seen.latched("other", value=True, now=LATEST, known=START) == (True, START)


def test_unused_keys_are_forgotten() -> None:
    seen = FirstSeen()
    seen.since("k", now=START)
    seen.prune()
    assert seen.since("k", now=LATER) == START
    seen.prune()
    seen.prune()
    assert seen.since("k", now=LATEST) == LATEST
