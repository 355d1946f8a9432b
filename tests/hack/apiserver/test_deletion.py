"""Deletes: finalizers, propagation, grace periods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.apiserver import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.raw_client import RawClient

PODS = "/api/v1/namespaces/default/pods"


def held(name: str, *finalizers: str) -> dict[str, Any]:
    body = widget(name)
    body["metadata"]["finalizers"] = list(finalizers)
    return body


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]} | spec}


async def test_finalizers_delay_the_deletion(wire: RawClient) -> None:
    await wire.post(WIDGETS, held("a", "x/one", "x/two"))
    async with wire.watch(WIDGETS) as events:
        marked = (await wire.delete(f"{WIDGETS}/a")).body["metadata"]
        assert marked["deletionTimestamp"] == "2026-01-01T00:00:00Z"
        assert marked["deletionGracePeriodSeconds"] == 0
        assert marked["generation"] == 2
        again = (await wire.delete(f"{WIDGETS}/a")).body["metadata"]
        assert again["resourceVersion"] == marked["resourceVersion"]
        await wire.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": ["x/two"]}})
        last = await wire.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": None}})
        assert last.status == 200
        assert (await wire.get(f"{WIDGETS}/a")).status == 404
        expected = [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a")]
        assert await events.take(3) == expected
        deleted = await events.next()
    assert deleted["type"] == "DELETED"
    assert deleted["object"]["metadata"]["finalizers"] == ["x/two"], "the last state that was stored"
    assert "finalizers" not in last.body["metadata"]
    assert deleted["object"]["metadata"]["resourceVersion"] == last.version


@pytest.mark.parametrize(
    ("body", "query"),
    [
        pytest.param({"propagationPolicy": "Orphan"}, {}, id="orphaning"),
        pytest.param({"orphanDependents": False}, {}, id="orphanDependents"),
        pytest.param(None, {"propagationPolicy": "Background"}, id="options in the query"),
    ],
)
async def test_delete_option_is_refused(wire: RawClient, body: Any, query: dict[str, str]) -> None:
    await wire.post(WIDGETS, widget("a"))
    assert (await wire.delete(f"{WIDGETS}/a", body, **query)).status == 422


async def test_job_delete_without_propagation_is_refused(wire: RawClient) -> None:
    path = "/apis/batch/v1/namespaces/default/jobs"
    await wire.post(path, {"metadata": {"name": "a"}, "spec": {"template": {}}})
    refused = await wire.delete(f"{path}/a")
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["propagationPolicy"]
    assert (await wire.delete(f"{path}/a", {"propagationPolicy": "Background"})).status == 200


@pytest.mark.parametrize(
    ("spec", "status", "options", "grace"),
    [
        pytest.param({}, {}, {}, None, id="unscheduled"),
        pytest.param({"nodeName": "n"}, {"phase": "Running"}, {}, 30, id="running"),
        pytest.param({"nodeName": "n", "terminationGracePeriodSeconds": 5}, {}, {}, 5, id="grace period of the Pod"),
        pytest.param({"nodeName": "n"}, {}, {"gracePeriodSeconds": 7}, 7, id="grace period of the request"),
        pytest.param({"nodeName": "n"}, {"phase": "Succeeded"}, {}, None, id="succeeded"),
        pytest.param({"nodeName": "n"}, {"phase": "Failed"}, {}, None, id="failed"),
        pytest.param({"nodeName": "n"}, {}, {"gracePeriodSeconds": 0}, None, id="forced"),
    ],
)
async def test_scheduled_pod_gets_a_grace_period(
    wire: RawClient, spec: dict[str, Any], status: dict[str, Any], options: dict[str, Any], grace: int | None
) -> None:
    created = await wire.post(PODS, pod("p", **spec))
    assert created.status == 201, created.body
    await wire.patch(f"{PODS}/p/status", {"status": status})
    answer = await wire.delete(f"{PODS}/p", options)
    if grace is None:
        assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0
        assert (await wire.get(f"{PODS}/p")).status == 404
        return
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == grace
    assert answer.body["metadata"]["deletionTimestamp"] == f"2026-01-01T00:00:{grace:02d}Z"
    assert (await wire.get(f"{PODS}/p")).status == 200
    assert (await wire.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})).status == 200
    assert (await wire.get(f"{PODS}/p")).status == 404
