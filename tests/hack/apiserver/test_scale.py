"""One number of a workload, read and written by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.scale import scale_of

if TYPE_CHECKING:
    from tests.support.wire import Wire

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALE = f"{DEPLOYMENTS}/web/scale"


@pytest.fixture
async def web(wire: Wire) -> Wire:
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    answer = await wire.post(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    assert answer.status == 201
    return wire


async def replicas(wire: Wire) -> Any:
    return (await wire.get(f"{DEPLOYMENTS}/web")).body["spec"]["replicas"]


async def test_it_is_read(web: Wire) -> None:
    body = (await web.get(SCALE)).body
    assert (body["kind"], body["apiVersion"], body["metadata"]["name"]) == ("Scale", "autoscaling/v1", "web")
    assert body["spec"] == {"replicas": 2}
    assert body["status"] == {"replicas": 0, "selector": "a=b"}


async def test_it_is_patched(web: Wire) -> None:
    assert (await web.patch(SCALE, {"spec": {"replicas": 5}})).body["spec"] == {"replicas": 5}
    assert await replicas(web) == 5


async def test_it_is_replaced(web: Wire) -> None:
    scale = (await web.get(SCALE)).body
    assert (await web.put(SCALE, scale | {"spec": {"replicas": 0}})).status == 200
    assert await replicas(web) == 0


async def test_an_outdated_one_is_refused(web: Wire) -> None:
    scale = (await web.get(SCALE)).body
    await web.patch(SCALE, {"spec": {"replicas": 5}})
    assert (await web.put(SCALE, scale)).status == 409


@pytest.mark.parametrize("number", [-1, "3"])
async def test_a_number_that_is_none_is_refused(web: Wire, number: object) -> None:
    answer = await web.patch(SCALE, {"spec": {"replicas": number}})
    assert (answer.status, await replicas(web)) == (422, 2)


async def test_a_dry_run_changes_nothing(web: Wire) -> None:
    answer = await web.call("PATCH", SCALE, {"spec": {"replicas": 5}}, kind="merge", dryRun="All")
    assert (answer.body["spec"], await replicas(web)) == ({"replicas": 5}, 2)


@pytest.mark.parametrize("path", [f"{DEPLOYMENTS}/nosuch/scale", "/api/v1/namespaces/default/configmaps/a/scale"])
async def test_what_is_not_there(wire: Wire, path: str) -> None:
    assert (await wire.get(path)).status == 404


def test_no_number_means_one() -> None:
    assert scale_of({"metadata": {"name": "a"}})["spec"] == {"replicas": 1}
