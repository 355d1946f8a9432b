from __future__ import annotations

import pytest

from upgrade_manager.api.phases import PHASES
from upgrade_manager.pipeline.engine import PIPELINE


@pytest.mark.rule("pipeline: one ordered table defines the phases")
def test_the_table_has_every_phase_once_in_the_order_of_the_api() -> None:
    assert [row.name for row in PIPELINE] == list(PHASES)


@pytest.mark.rule("pipeline: one ordered table defines the phases")
def test_every_row_leads_to_the_phase_of_its_name() -> None:
    assert [row.phase.name for row in PIPELINE] == [row.name for row in PIPELINE]
