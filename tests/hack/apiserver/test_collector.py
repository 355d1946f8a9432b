"""Garbage collection of objects whose owners are deleted or missing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.apiserver import ROBOTS, WIDGETS, robot, widget

if TYPE_CHECKING:
    from tests.support.raw_client import RawClient

pytestmark = pytest.mark.usefixtures("controllers")

MAPS = "/api/v1/namespaces/default/configmaps"


def owner(obj: dict[str, Any], *, block: bool = False, **more: Any) -> dict[str, Any]:
    metadata = obj["metadata"]
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return reference | ({"blockOwnerDeletion": True} if block else {}) | more


def owned(name: str, *owners: dict[str, Any], finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"metadata": {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}}


async def settled() -> None:
    await asyncio.sleep(5)


async def test_dependents_are_deleted_with_their_last_owner(wire: RawClient) -> None:
    one = (await wire.post(WIDGETS, widget("one"))).body
    two = (await wire.post(WIDGETS, widget("two"))).body
    await wire.post(MAPS, owned("single", owner(one)))
    await wire.post(MAPS, owned("shared", owner(one), owner(two)))
    await wire.delete(f"{WIDGETS}/one")
    await settled()
    left = await wire.get(MAPS)
    assert left.names == ["shared"]
    assert left.body["items"][0]["metadata"]["ownerReferences"] == [owner(two)]
    await wire.delete(f"{WIDGETS}/two")
    await settled()
    assert (await wire.get(MAPS)).names == []


async def test_whole_tree_is_deleted(wire: RawClient) -> None:
    root = (await wire.post(WIDGETS, widget("root"))).body
    middle = await wire.post(WIDGETS, widget("middle") | owned("middle", owner(root)))
    await wire.post(MAPS, owned("leaf", owner(middle.body)))
    await wire.delete(f"{WIDGETS}/root")
    await settled()
    assert (await wire.get(WIDGETS)).names == []
    assert (await wire.get(MAPS)).names == []


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        pytest.param({}, True, id="existing owner"),
        pytest.param({"uid": "11111111-0000-4000-8000-000000000000"}, False, id="owner with another uid"),
        pytest.param({"name": "missing"}, False, id="missing owner"),
        pytest.param({"kind": "Gadget"}, True, id="unknown kind"),
    ],
)
async def test_dependent_of_a_missing_owner_is_deleted(wire: RawClient, change: dict[str, Any], kept: bool) -> None:  # noqa: FBT001
    real = (await wire.post(WIDGETS, widget("real"))).body
    await wire.post(MAPS, owned("a", owner(real, **change)))
    await settled()
    assert (await wire.get(f"{MAPS}/a")).status == (200 if kept else 404)


async def test_owner_in_another_namespace_counts_as_missing(wire: RawClient) -> None:
    elsewhere = WIDGETS.replace("/default/", "/kube-system/")
    foreign = (await wire.post(elsewhere, widget("foreign"))).body
    cluster = (await wire.post(ROBOTS, robot("cluster"))).body
    await wire.post(MAPS, owned("a", owner(foreign)))
    await wire.post(MAPS, owned("b", owner(cluster)))
    await settled()
    assert (await wire.get(MAPS)).names == ["b"]


@pytest.mark.parametrize("block", [True, False], ids=["blocking", "not blocking"])
async def test_foreground_deletes_blocking_dependents_first(wire: RawClient, block: bool) -> None:  # noqa: FBT001
    root = (await wire.post(WIDGETS, widget("root"))).body
    await wire.post(MAPS, owned("slow", owner(root, block=block), finalizers=("x/one",)))
    await wire.post(MAPS, owned("fast", owner(root, block=block)))
    await wire.delete(f"{WIDGETS}/root", {"propagationPolicy": "Foreground"})
    await settled()
    assert (await wire.get(MAPS)).names == ["slow"]
    assert (await wire.get(f"{WIDGETS}/root")).status == (200 if block else 404)
    await wire.patch(f"{MAPS}/slow", {"metadata": {"finalizers": None}})
    await settled()
    assert (await wire.get(f"{WIDGETS}/root")).status == 404


async def test_updated_owner_references_are_collected(wire: RawClient) -> None:
    real = (await wire.post(WIDGETS, widget("real"))).body
    await wire.post(MAPS, owned("a", owner(real)))
    await settled()
    absent = owner(real, uid="11111111-0000-4000-8000-000000000000")
    await wire.patch(f"{MAPS}/a", {"metadata": {"ownerReferences": [absent]}})
    await settled()
    assert (await wire.get(f"{MAPS}/a")).status == 404
