from __future__ import annotations

from typing import Any

import pytest

from tests.support.toolkit.cluster_upgrade import cluster_upgrade
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS
from upgrade_manager.toolkit.charts.managed_charts import HARVESTER, read_chart
from upgrade_manager.toolkit.charts.workload_updates import (
    ANNOTATION_METHODS,
    methods_of,
    resume_updates,
    suspend_updates,
    with_methods,
)


def values(methods: Any = None, **spec: Any) -> dict[str, Any]:
    strategy = {} if methods is None else {"workloadUpdateStrategy": {"workloadUpdateMethods": methods}}
    return {"kubevirt": {"spec": {**strategy, **spec}}, "other": 1}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param({"other": 1}, id="no-values"),
        pytest.param(values(monitorAccount="operator"), id="no-methods"),
        pytest.param(values(["LiveMigrate"]), id="methods"),
        pytest.param(values(["Evict"], monitorAccount="operator"), id="methods-among-others"),
    ],
)
def test_methods_are_emptied_and_restored(before: dict[str, Any]) -> None:
    methods = methods_of(before)
    emptied = with_methods(before, [])
    assert methods_of(emptied) == []
    assert with_methods(emptied, methods) == before


@pytest.mark.parametrize("odd", [None, "text", ["list"], {"spec": None}])
def test_values_of_another_shape_have_no_methods(odd: Any) -> None:
    assert methods_of({"kubevirt": odd}) is None
    assert methods_of(with_methods({"kubevirt": odd}, [])) == []


@pytest.mark.parametrize(
    ("record", "users", "after"),
    [
        pytest.param('["Evict"]', None, ["Evict"], id="recorded"),
        pytest.param("null", None, None, id="chart-default"),
        pytest.param("{", None, None, id="unreadable-record"),
        pytest.param('["Evict"]', ["LiveMigrate"], ["LiveMigrate"], id="changed-by-a-user"),
    ],
)
async def test_restored_three_way(tmp_path: Any, record: str, users: list[str] | None, after: list[str] | None) -> None:
    async with cluster_upgrade(tmp_path) as upgrade:
        client, context = upgrade.world.client, upgrade.world.context()
        await suspend_updates(context)
        metadata = {"annotations": {ANNOTATION_METHODS: record}}
        body = {"metadata": metadata} | ({} if users is None else {"spec": {"values": values(users)}})
        await client.patch(MANAGED_CHARTS, HARVESTER, MergePatch(body), namespace="fleet-local")
        await resume_updates(context)
        chart = await read_chart(client, HARVESTER)
        assert methods_of(objects.spec(chart).get("values") or {}) == after
        assert ANNOTATION_METHODS not in objects.annotations_of(chart)
