"""Namespace termination."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.server.apiserver import widget

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer
    from tests.support.server.raw_client import RawClient

SPACES = "/api/v1/namespaces"
WIDGETS = "/apis/example.io/v1/namespaces/x/widgets"


@pytest.mark.usefixtures("controllers")
async def test_namespace_is_deleted_after_its_content(wire: RawClient) -> None:
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
    await wire.patch(f"{WIDGETS}/slow", {"metadata": {"finalizers": None}})
    await asyncio.sleep(1)
    assert (await wire.get(f"{SPACES}/x")).status == 404
    assert (await wire.post(WIDGETS, widget("later"))).status == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_system_namespace_cannot_be_deleted(wire: RawClient, name: str) -> None:
    refused = await wire.delete(f"{SPACES}/{name}")
    assert refused.status == 403
    assert refused.body["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_only_finalize_removes_the_finalizer(wire: RawClient) -> None:
    created = (await wire.post(SPACES, {"metadata": {"name": "x"}})).body
    replaced = await wire.put(f"{SPACES}/x", created | {"spec": {}})
    assert replaced.body["spec"] == {"finalizers": ["kubernetes"]}
    await wire.delete(f"{SPACES}/x")
    terminating = (await wire.get(f"{SPACES}/x")).body
    assert (await wire.put(f"{SPACES}/x/finalize", terminating | {"spec": {}})).status == 200
    assert (await wire.get(f"{SPACES}/x")).status == 404


@pytest.mark.usefixtures("controllers")
async def test_namespace_with_another_finalizer_stays(server: ApiServer, wire: RawClient) -> None:
    await wire.post(SPACES, {"metadata": {"name": "x", "finalizers": ["x.io/one"]}})
    await wire.delete(f"{SPACES}/x")
    await asyncio.sleep(1)
    before = server.storage.revision
    await asyncio.sleep(60)
    assert server.storage.revision == before
    await wire.patch(f"{SPACES}/x", {"metadata": {"finalizers": None}})
    assert (await wire.get(f"{SPACES}/x")).status == 404
