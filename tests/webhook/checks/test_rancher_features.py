from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from upgrade_manager.kube.resources import RANCHER_FEATURES
from webhook.checks.rancher_features import CHECK

SET = (
    "Rancher's Feature multi-cluster-management has spec.value true, with which Rancher manages other clusters, and "
    "cluster-upgrade fails once it has upgraded Rancher. Let the Feature follow its default, which restarts "
    "Rancher: kubectl patch features.management.cattle.io multi-cluster-management --type merge "
    """-p '{"spec":{"value":null}}'"""
)


@pytest.mark.rule("admission: no user may have set Rancher's Feature multi-cluster-management to true")
@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        pytest.param({}, [], id="default"),
        pytest.param({"spec": {"value": None}}, [], id="null"),
        pytest.param({"spec": {"value": False}}, [], id="false"),
        pytest.param({"spec": {"value": True}}, [SET], id="true"),
        pytest.param({"spec": {"value": True}, "status": {"default": False}}, [SET], id="true beside the default"),
        pytest.param({"spec": {"value": True}, "status": {"lockedValue": None}}, [SET], id="not locked"),
        pytest.param({"spec": {"value": True}, "status": {"lockedValue": False}}, [], id="locked"),
        pytest.param({"status": {"default": True}}, [], id="default true"),
        pytest.param({"spec": {"value": "true"}}, [], id="wrong type"),
        pytest.param({"spec": None}, [], id="no spec"),
    ],
)
async def test_rancher_features(feature: Any, expected: list[str]) -> None:
    other = named("other", spec={"value": True})
    reader = MemoryReader({RANCHER_FEATURES: [{**named("multi-cluster-management"), **feature}, other]})
    assert_messages(await find(CHECK, reader), expected)


async def test_absent_feature_is_not_a_problem() -> None:
    assert await find(CHECK, MemoryReader({RANCHER_FEATURES: []})) == []
