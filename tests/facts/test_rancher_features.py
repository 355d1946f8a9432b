from __future__ import annotations

import pytest

from upgrade_manager.facts.rancher_features import unmet
from upgrade_manager.kube.objects import Object


@pytest.mark.parametrize(
    ("spec", "status", "field"),
    [
        pytest.param({}, {"default": False}, "", id="default"),
        pytest.param(
            {"value": None}, {"default": True, "lockedValue": None}, "is true in status.default", id="refused"
        ),
        pytest.param({"value": False}, {"default": True}, "", id="value-before-default"),
        pytest.param({"value": True}, {"default": False}, "is true in spec.value", id="a-user's-value"),
        pytest.param({"value": True}, {"default": True, "lockedValue": False}, "", id="locked-before-value"),
        pytest.param({"value": False}, {"lockedValue": True}, "is true in status.lockedValue", id="locked"),
        pytest.param({}, {}, "has no value in status.default", id="unset"),
    ],
)
def test_first_field_that_is_set_counts(spec: Object, status: Object, field: str) -> None:
    found = unmet({"metadata": {"name": "multi-cluster-management"}, "spec": spec, "status": status})
    assert bool(found) == bool(field)
    assert f"Feature multi-cluster-management {field}" in found or not field


def test_absent_feature_is_named() -> None:
    assert unmet(None).startswith("Feature multi-cluster-management does not exist; Rancher creates it when it starts.")
