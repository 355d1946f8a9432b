"""The life and death of namespaces."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.apiserver import widget

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from tests.support.raw_client import RawClient

SPACES = "/api/v1/namespaces"
WIDGETS = "/apis/example.io/v1/namespaces/x/widgets"


async def test_a_new_namespace_is_active_and_carries_its_name(wire: RawClient) -> None:
    created = (await wire.post(SPACES, {"metadata": {"name": "x"}})).body
    assert created["status"] == {"phase": "Active"}
    assert created["spec"] == {"finalizers": ["kubernetes"]}
    assert created["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert (await wire.get(SPACES)).names == ["default", "kube-node-lease", "kube-public", "kube-system", "x"]


@pytest.mark.usefixtures("controllers")
async def test_a_namespace_goes_after_what_is_in_it(wire: RawClient) -> None:
    await wire.post(SPACES, {"metadata": {"name": "x"}})
    await wire.post(WIDGETS, widget("fast"))
    slow = widget("slow")
    slow["metadata"]["finalizers"] = ["x/one"]
    await wire.post(WIDGETS, slow)
    deleted = (await wire.delete(f"{SPACES}/x")).body
    assert deleted["status"]["phase"] == "Terminating"
    await asyncio.sleep(1)
    assert (await wire.get(WIDGETS)).names == ["slow"]
    refused = await wire.post(WIDGETS, widget("late"))
    assert refused.status == 403
    assert refused.body["message"] == (
        'widgets.example.io "late" is forbidden: unable to create new content in namespace x '
        "because it is being terminated"
    )
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await wire.patch(f"{WIDGETS}/slow", {"metadata": {"finalizers": None}})
    await asyncio.sleep(1)
    assert (await wire.get(f"{SPACES}/x")).status == 404
    assert (await wire.post(WIDGETS, widget("later"))).status == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_a_namespace_that_every_cluster_needs_stays(wire: RawClient, name: str) -> None:
    refused = await wire.delete(f"{SPACES}/{name}")
    assert refused.status == 403
    assert refused.body["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_only_finalize_takes_the_finalizer_away(wire: RawClient) -> None:
    created = (await wire.post(SPACES, {"metadata": {"name": "x"}})).body
    replaced = await wire.put(f"{SPACES}/x", created | {"spec": {}})
    assert replaced.body["spec"] == {"finalizers": ["kubernetes"]}
    await wire.delete(f"{SPACES}/x")
    dying = (await wire.get(f"{SPACES}/x")).body
    assert (await wire.put(f"{SPACES}/x/finalize", dying | {"spec": {}})).status == 200
    assert (await wire.get(f"{SPACES}/x")).status == 404


@pytest.mark.usefixtures("controllers")
async def test_a_namespace_that_somebody_else_holds_is_left_alone(server: ApiServer, wire: RawClient) -> None:
    await wire.post(SPACES, {"metadata": {"name": "x", "finalizers": ["x.io/one"]}})
    await wire.delete(f"{SPACES}/x")
    await asyncio.sleep(1)
    before = server.storage.revision
    await asyncio.sleep(60)
    assert server.storage.revision == before
    await wire.patch(f"{SPACES}/x", {"metadata": {"finalizers": None}})
    assert (await wire.get(f"{SPACES}/x")).status == 404
