from __future__ import annotations

import pytest

from upgrade_manager.pipeline.selections import MACHINE_PLANS


@pytest.mark.rule("nodes: acknowledging changes one annotation of the Secret, whose data is never read")
def test_of_a_machine_plan_only_the_metadata_is_read() -> None:
    assert MACHINE_PLANS.metadata_only
    assert (MACHINE_PLANS.namespace, MACHINE_PLANS.field_selector) == ("fleet-local", "type=rke.cattle.io/machine-plan")
