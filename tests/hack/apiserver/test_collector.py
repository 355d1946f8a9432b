"""Garbage collection of objects whose owners are deleted or missing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server.apiserver import ROBOTS, WIDGETS, robot, widget

if TYPE_CHECKING:
    from tests.support.server.raw_client import RawClient

pytestmark = pytest.mark.usefixtures("controllers")

MAPS = "/api/v1/namespaces/default/configmaps"


def owner(obj: dict[str, Any], **more: Any) -> dict[str, Any]:
    metadata = obj["metadata"]
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return reference | more


def owned(name: str, *owners: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "ownerReferences": list(owners)}}


async def settled() -> None:
    await asyncio.sleep(5)


async def test_whole_tree_is_deleted(wire: RawClient) -> None:
    root = (await wire.post(WIDGETS, widget("root"))).body
    middle = await wire.post(WIDGETS, widget("middle") | owned("middle", owner(root)))
    await wire.post(MAPS, owned("leaf", owner(middle.body)))
    await wire.delete(f"{WIDGETS}/root")
    await settled()
    assert (await wire.get(WIDGETS)).names == []
    assert (await wire.get(MAPS)).names == []


async def test_owner_in_another_namespace_counts_as_missing(wire: RawClient) -> None:
    elsewhere = WIDGETS.replace("/default/", "/kube-system/")
    foreign = (await wire.post(elsewhere, widget("foreign"))).body
    cluster = (await wire.post(ROBOTS, robot("cluster"))).body
    await wire.post(MAPS, owned("a", owner(foreign)))
    await wire.post(MAPS, owned("b", owner(cluster)))
    await settled()
    assert (await wire.get(MAPS)).names == ["b"]


async def test_owner_of_an_unknown_kind_counts_as_existing(wire: RawClient) -> None:
    real = (await wire.post(WIDGETS, widget("real"))).body
    await wire.post(MAPS, owned("a", owner(real, kind="Gadget")))
    await settled()
    assert (await wire.get(f"{MAPS}/a")).status == 200


async def test_updated_owner_references_are_collected(wire: RawClient) -> None:
    real = (await wire.post(WIDGETS, widget("real"))).body
    await wire.post(MAPS, owned("a", owner(real)))
    await settled()
    absent = owner(real, uid="11111111-0000-4000-8000-000000000000")
    await wire.patch(f"{MAPS}/a", {"metadata": {"ownerReferences": [absent]}})
    await settled()
    assert (await wire.get(f"{MAPS}/a")).status == 404
