"""Each phase, component, blocker reason, wait, node state and step has its entry in every mapping and document."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.recipes.places import PHASES, PLACES, ROOT, Place
from upgrade_manager.api.phases import PHASE_SPECS, PhaseName
from upgrade_manager.pipeline.engine import PIPELINE

IDS = [f"{place.kind}: {place.entry}, {place.file}" for place in PLACES]


@pytest.mark.parametrize("place", PLACES, ids=IDS)
def test_each_member_has_its_entry(place: Place) -> None:
    assert list(place.gaps()) == []


@pytest.mark.parametrize("place", PLACES, ids=IDS)
def test_member_without_an_entry_is_named_with_the_file(place: Place) -> None:
    extended = replace(place, members=(*place.members, "Polish"))
    assert list(extended.gaps()) == [f"{place.kind} Polish has no {place.entry} in {place.file}"]
    assert (ROOT / place.file).exists()


def test_exemption_that_is_not_needed_is_named() -> None:
    row = replace(PHASES[0], exempt={"Initialize": "it has one", "Polish": "it does not exist"})
    assert list(row.gaps()) == [
        "phase Initialize has a row in PHASE_SPECS in upgrade_manager/api/phases.py, so its exemption is not needed",
        "phase Polish is exempt from a row in PHASE_SPECS in upgrade_manager/api/phases.py, and does not exist",
    ]


def test_phases_have_one_order() -> None:
    assert [row.name for row in PHASE_SPECS] == list(PhaseName) == [phase.name for phase in PIPELINE]
