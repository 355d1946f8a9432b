from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.toolkit.charts.managed_charts import ANNOTATION_GENERATION, without_effect

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

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
