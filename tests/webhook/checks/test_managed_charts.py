from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import MANAGED_CHARTS
from webhook.checks.managed_charts import CHECK

NOT_READY = "ManagedChart fleet-local/harvester is not ready: {}. Wait until it is, or repair it: kubectl describe "
MODIFIED = "Modified(1)\n [Cluster fleet-local/local]."
NOT_MODIFIED = NOT_READY.format("Modified(1) [Cluster fleet-local/local]")
NOT_REPORTED = NOT_READY.format("Fleet reports no reason")


def chart(*conditions: Any, namespace: str = "fleet-local") -> Object:
    return named("harvester", namespace, status={"conditions": list(conditions)})


def ready(status: Any, message: str = "") -> Object:
    return {"type": "Ready", "status": status, "message": message}


DEFINED = {"type": "Defined", "status": "True"}


@pytest.mark.rule("admission: every ManagedChart in fleet-local must be Ready")
@pytest.mark.parametrize(
    ("charts", "expected"),
    [
        pytest.param([chart(DEFINED, ready("True"))], [], id="ready"),
        pytest.param([], [], id="none"),
        pytest.param([chart(ready("False"), namespace="default")], [], id="another namespace"),
        pytest.param([chart(ready("False", MODIFIED))], [NOT_MODIFIED], id="modified"),
        pytest.param([chart(ready("False", "x" * 999))], [NOT_READY.format("x" * 300 + "…")], id="long message"),
        pytest.param([chart(ready("Unknown"))], [NOT_REPORTED], id="unknown"),
        pytest.param([chart(DEFINED)], [NOT_REPORTED], id="no condition"),
        pytest.param([named("harvester", "fleet-local")], [NOT_REPORTED], id="no status"),
        pytest.param([named("harvester", "fleet-local", status={"conditions": None})], [NOT_REPORTED], id="null"),
        pytest.param([chart(None, "Ready", ready(1))], [NOT_REPORTED], id="wrong types"),
        pytest.param(
            [named("harvester", "fleet-local", status={"summary": {"nonReadyResources": [{"name": "local"}]}})],
            [NOT_READY.format("local NotReady")],
            id="resources that Fleet names",
        ),
    ],
)
async def test_managed_charts(charts: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({MANAGED_CHARTS: charts})), expected)
