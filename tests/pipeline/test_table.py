from __future__ import annotations

from upgrade_manager.api.phases import PHASES
from upgrade_manager.pipeline.table import PIPELINE


def test_the_table_has_every_phase_once_in_the_order_of_the_api() -> None:
    assert [row.name for row in PIPELINE] == list(PHASES)


def test_every_row_leads_to_the_phase_of_its_name() -> None:
    assert [row.phase.name for row in PIPELINE] == [row.name for row in PIPELINE]
