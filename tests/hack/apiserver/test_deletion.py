"""Deletes: finalizers, propagation, grace periods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.apiserver import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.server.raw_client import RawClient

PODS = "/api/v1/namespaces/default/pods"


async def test_finalizers_delay_the_deletion(wire: RawClient) -> None:
    await wire.post(WIDGETS, widget("a") | {"metadata": {"name": "a", "finalizers": ["x/one", "x/two"]}})
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


async def test_grace_period_of_a_pod_ends_in_the_future(wire: RawClient) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    await wire.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
    metadata = (await wire.delete(f"{PODS}/p")).body["metadata"]
    assert (metadata["deletionGracePeriodSeconds"], metadata["deletionTimestamp"]) == (30, "2026-01-01T00:00:30Z")
    assert (await wire.get(f"{PODS}/p")).status == 200
    await wire.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (await wire.get(f"{PODS}/p")).status == 404
