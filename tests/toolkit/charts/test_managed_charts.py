from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.cluster_reader import create, named
from tests.support.toolkit.cluster_upgrade import cluster_upgrade
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import MANAGED_CHARTS
from upgrade_manager.toolkit.charts.managed_charts import (
    ANNOTATION_GENERATION,
    ANNOTATION_PAUSED,
    HARVESTER,
    KUBEOVN_CRD,
    UPGRADED,
    charts_not_paused,
    charts_not_settled,
    pause_charts,
    unpause_charts,
    without_effect,
)
from upgrade_manager.toolkit.run.context import ToolkitContext

ABOUT = "ManagedChart fleet-local/harvester"
PAUSED = "; it is paused, set spec.paused to false to continue"


def chart(*, version: str = "1.8.0", paused: bool = False, before: str | None = None, **status: Any) -> Object:
    ready = {
        "observedGeneration": 13,
        "conditions": [{"type": "Ready", "status": "True"}],
        "summary": {"ready": 1, "desiredReady": 1},
    }
    annotations = {} if before is None else {ANNOTATION_GENERATION: before}
    return {
        "metadata": {"name": "harvester", "namespace": "fleet-local", "annotations": annotations},
        "spec": {"version": version, "paused": paused},
        "status": ready | status,
    }


def not_ready(*resources: Object, message: str = "") -> dict[str, Any]:
    return {
        "conditions": [{"type": "Ready", "status": "False", "message": message}],
        "summary": {"ready": 0, "desiredReady": 1, "nonReadyResources": list(resources)},
    }


def deployment(name: str) -> Object:
    summary = {"state": "updating", "message": ["Available: 1/3"]}
    return {"kind": "Deployment", "namespace": "harvester-system", "name": name, "summary": summary}


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        pytest.param(chart(), "", id="ready"),
        pytest.param(chart(before="12"), "", id="ready-in-new-generation"),
        pytest.param(chart(paused=True), "", id="ready-and-paused-by-a-user"),
        pytest.param(chart(version="1.7.1"), f"{ABOUT} has version 1.7.1 instead of 1.8.0", id="old-version"),
        pytest.param(chart(before="13"), f"{ABOUT}: Fleet has not deployed version 1.8.0 yet", id="stale"),
        pytest.param(
            chart(before="13", paused=True), f"{ABOUT}: Fleet has not deployed version 1.8.0 yet{PAUSED}", id="paused"
        ),
        pytest.param(
            chart(**not_ready(message="ErrApplied(1) [Cluster fleet-local/local: timed out]")),
            f"{ABOUT} 1.8.0 is not ready: ErrApplied(1) [Cluster fleet-local/local: timed out]",
            id="condition",
        ),
        pytest.param(
            chart(**not_ready({"name": "fleet-local/local", "bundleState": "ErrApplied", "message": "timed out"})),
            f"{ABOUT} 1.8.0 is not ready: fleet-local/local ErrApplied: timed out",
            id="bundle",
        ),
        pytest.param(
            chart(**not_ready({"name": "c/local", "bundleState": "NotReady", "nonReadyStatus": [deployment("a")]})),
            f"{ABOUT} 1.8.0 is not ready: c/local NotReady: Deployment harvester-system/a: Available: 1/3",
            id="object",
        ),
        pytest.param(
            chart(**not_ready(*({"name": f"r{number}", "bundleState": "Modified"} for number in range(5)))),
            f"{ABOUT} 1.8.0 is not ready: r0 Modified; r1 Modified; r2 Modified; 2 more",
            id="many",
        ),
        pytest.param(
            chart(summary={"ready": 0, "desiredReady": 1}),
            f"{ABOUT} 1.8.0 is not ready: no reason is reported",
            id="summary-only",
        ),
    ],
)
def test_what_a_chart_lacks(obj: Object, words: str) -> None:
    assert without_effect(obj, "1.8.0") == words


@asynccontextmanager
async def charts(folder: Path) -> AsyncIterator[tuple[Client, ToolkitContext]]:
    """Create a cluster whose charts have the old release's versions, with the optional one."""
    async with cluster_upgrade(folder) as upgrade:
        client = upgrade.world.client
        await create(client, MANAGED_CHARTS, named(KUBEOVN_CRD, "fleet-local", spec={"version": "1.7.1"}))
        yield client, upgrade.world.context()


async def resume(client: Client, name: str) -> None:
    """Resume the chart, as a user does."""
    await client.patch(MANAGED_CHARTS, name, MergePatch({"spec": {"paused": False}}), namespace="fleet-local")


async def test_every_chart_is_paused_also_the_optional_one(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        names = ", ".join(f"fleet-local/{name}" for name in (*UPGRADED, KUBEOVN_CRD))
        assert await charts_not_paused(context) == f"ManagedCharts {names} are not paused"
        await pause_charts(context)
        assert await charts_not_paused(context) == ""
        found = await client.get(MANAGED_CHARTS, KUBEOVN_CRD, namespace="fleet-local")
        assert objects.spec(found)["paused"] is True


async def test_chart_that_a_user_resumes_is_paused_again(tmp_path: Path) -> None:
    async with charts(tmp_path) as (client, context):
        await pause_charts(context)
        await resume(client, HARVESTER)
        assert await charts_not_paused(context) == "ManagedCharts fleet-local/harvester are not paused"
        await pause_charts(context)
        await unpause_charts(context)
        found = await client.get(MANAGED_CHARTS, HARVESTER, namespace="fleet-local")
        assert objects.spec(found)["paused"] is False
        assert ANNOTATION_PAUSED not in objects.annotations_of(found)


async def test_chart_of_the_old_version_is_not_settled(tmp_path: Path) -> None:
    async with charts(tmp_path) as (_, context):
        assert "ManagedChart fleet-local/harvester-crd has version" in await charts_not_settled(context)
