from __future__ import annotations

import pytest

from upgrade_manager.facts.final_phases import is_final


@pytest.mark.parametrize(
    ("phase", "ended"),
    [
        ("Succeeded", 1),
        ("Failed", 1),
        ("Running", 0),
        ("Pending", 0),
        ("", 0),
        ("Unknown", 0),
        (None, 0),
        (["Failed"], 0),
    ],
)
def test_final_phases(phase: object, ended: int) -> None:
    assert is_final({"status": {"phase": phase}}) == ended


def test_object_without_status_is_not_final() -> None:
    assert not is_final({})
