from __future__ import annotations

import pytest

from upgrade_manager.pipeline.selections import MACHINE_PLANS


@pytest.mark.rule("nodes: acknowledging changes two annotations of the Secret, whose data is never read")
def test_machine_plan_data_is_not_read() -> None:
    assert MACHINE_PLANS.metadata_only
    assert (MACHINE_PLANS.namespace, MACHINE_PLANS.field_selector) == ("fleet-local", "type=rke.cattle.io/machine-plan")
