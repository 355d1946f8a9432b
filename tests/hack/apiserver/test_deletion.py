"""Deletes: finalizers, preconditions, grace, collections."""

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


async def test_a_deleted_object_is_named_with_its_uid(wire: RawClient) -> None:
    created = (await wire.post(WIDGETS, widget("a"))).body
    deleted = await wire.delete(f"{WIDGETS}/a")
    details = {"name": "a", "group": "example.io", "kind": "widgets", "uid": created["metadata"]["uid"]}
    assert deleted.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


async def test_a_finalizer_holds_the_object_until_it_is_taken_away(wire: RawClient) -> None:
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
        gone = await events.next()
    assert gone["type"] == "DELETED"
    assert gone["object"]["metadata"]["finalizers"] == ["x/two"], "the last state that was stored"
    assert "finalizers" not in last.body["metadata"]
    assert gone["object"]["metadata"]["resourceVersion"] == last.version


async def test_a_dying_object_takes_no_new_finalizer(wire: RawClient) -> None:
    await wire.post(WIDGETS, held("a", "x/one"))
    await wire.delete(f"{WIDGETS}/a")
    refused = await wire.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": ["x/one", "x/new"]}})
    assert refused.status == 422
    assert 'found new finalizers []string{"x/new"}' in refused.body["message"]
    assert (await wire.patch(f"{WIDGETS}/a", {"spec": {"size": 2}})).status == 200


@pytest.mark.parametrize(
    ("preconditions", "status"),
    [
        pytest.param({"uid": "UID"}, 200, id="the right uid"),
        pytest.param({"uid": "other"}, 409, id="another uid"),
        pytest.param({"resourceVersion": "VERSION"}, 200, id="the right version"),
        pytest.param({"resourceVersion": "1"}, 409, id="an older version"),
    ],
)
async def test_preconditions_are_checked(wire: RawClient, preconditions: dict[str, str], status: int) -> None:
    created = await wire.post(WIDGETS, widget("a"))
    real = {"UID": created.body["metadata"]["uid"], "VERSION": created.version}
    wanted = {key: real.get(value, value) for key, value in preconditions.items()}
    answer = await wire.delete(f"{WIDGETS}/a", {"preconditions": wanted})
    assert answer.status == status
    if status == 409:
        assert answer.body["reason"] == "Conflict"
        assert "in the precondition" in answer.body["message"]


@pytest.mark.parametrize(
    ("propagation", "finalizers"),
    [
        pytest.param("Foreground", ["foregroundDeletion"], id="foreground"),
        pytest.param("Orphan", ["orphan"], id="orphan"),
    ],
)
async def test_propagation_is_a_finalizer(wire: RawClient, propagation: str, finalizers: list[str]) -> None:
    await wire.post(WIDGETS, widget("a"))
    answer = await wire.delete(f"{WIDGETS}/a", {"propagationPolicy": propagation})
    assert answer.body["metadata"]["finalizers"] == finalizers
    background = await wire.delete(f"{WIDGETS}/a", {"propagationPolicy": "Background"})
    assert background.body["status"] == "Success"


async def test_a_job_leaves_its_pods_unless_told(wire: RawClient) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    created = await wire.post(jobs, {"metadata": {"name": "j"}, "spec": {"template": template}})
    assert created.status == 201, created.body
    answer = await wire.delete(f"{jobs}/j")
    assert "orphan" in answer.body["metadata"]["finalizers"]


async def test_an_unknown_propagation_is_refused(wire: RawClient) -> None:
    await wire.post(WIDGETS, widget("a"))
    assert (await wire.delete(f"{WIDGETS}/a", propagationPolicy="Sometimes")).status == 422


@pytest.mark.parametrize(
    ("spec", "status", "options", "grace"),
    [
        pytest.param({}, {}, {}, None, id="never scheduled"),
        pytest.param({"nodeName": "n"}, {"phase": "Running"}, {}, 30, id="running"),
        pytest.param({"nodeName": "n", "terminationGracePeriodSeconds": 5}, {}, {}, 5, id="its own grace"),
        pytest.param({"nodeName": "n"}, {}, {"gracePeriodSeconds": 7}, 7, id="the request's grace"),
        pytest.param({"nodeName": "n"}, {"phase": "Succeeded"}, {}, None, id="succeeded"),
        pytest.param({"nodeName": "n"}, {"phase": "Failed"}, {}, None, id="failed"),
        pytest.param({"nodeName": "n"}, {}, {"gracePeriodSeconds": 0}, None, id="by force"),
    ],
)
async def test_a_pod_is_given_time(
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


async def test_a_collection_is_deleted_by_selector(wire: RawClient) -> None:
    for name in "abc":
        body = held(name, "x/one") if name == "b" else widget(name)
        body["metadata"]["labels"] = {"on": "no" if name == "c" else "yes"}
        await wire.post(WIDGETS, body)
    answer = await wire.delete(WIDGETS, labelSelector="on=yes")
    assert answer.names == ["a", "b"]
    left = await wire.get(WIDGETS)
    assert left.names == ["b", "c"]
    assert "deletionTimestamp" in left.body["items"][0]["metadata"]
