from __future__ import annotations

import pytest

from upgrade_manager.api.phases import PHASES
from upgrade_manager.pipeline.engine import PIPELINE


@pytest.mark.rule("pipeline: one ordered table defines the phases")
def test_table_has_every_phase_in_the_order_of_the_api() -> None:
    assert [phase().name for phase in PIPELINE] == list(PHASES)
