"""What becomes of dependents when their owner is deleted, and how the owner looks meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.polling import eventually

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

HOLD = "example.io/hold"


async def _owner(api: BareApi) -> dict[str, str]:
    """Create one; what comes back is the reference to it."""
    answer = await api.admin.post(api.path("configmaps"), {"metadata": {"name": "owner"}})
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": answer.body["metadata"]["uid"]}


async def _dependent(api: BareApi, owner: dict[str, Any], *, held: bool = False) -> None:
    metadata = {"name": "dependent", "ownerReferences": [owner], "finalizers": [HOLD] if held else []}
    assert (await api.admin.post(api.path("secrets"), {"metadata": metadata})).status == 201


async def _metadata(api: BareApi, plural: str, name: str) -> dict[str, Any] | None:
    """Of an object, None when it is gone."""
    answer = await api.admin.get(api.path(plural, name))
    return answer.body["metadata"] if answer.status == 200 else None


async def _dependent_until(api: BareApi, wanted: str) -> dict[str, Any]:
    """The dependent's metadata once it is `dying`, `free` or `gone`."""
    async with asyncio.timeout(20):
        while True:
            found = await _metadata(api, "secrets", "dependent")
            state = "gone" if found is None else "dying" if "deletionTimestamp" in found else "alive"
            if state == "alive" and found is not None and "ownerReferences" not in found:
                state = "free"
            if state == wanted:
                return found or {}
            await asyncio.sleep(0.05)


async def _delete(api: BareApi, propagation: str) -> dict[str, Any]:
    answer = await api.admin.delete(api.path("configmaps", "owner"), {"propagationPolicy": propagation})
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.body
    return body


async def _gone(api: BareApi) -> None:
    async def is_gone() -> bool:
        return await _metadata(api, "configmaps", "owner") is None

    await eventually(is_gone, seconds=20)


async def test_in_the_background_the_owner_goes_first(api: BareApi) -> None:
    await _dependent(api, await _owner(api))
    assert (await _delete(api, "Background"))["status"] == "Success"
    assert await _metadata(api, "configmaps", "owner") is None
    await _dependent_until(api, "gone")


async def test_in_the_foreground_a_blocking_dependent_goes_first(api: BareApi) -> None:
    await _dependent(api, await _owner(api) | {"blockOwnerDeletion": True}, held=True)
    dying = await _delete(api, "Foreground")
    assert dying["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert dying["metadata"]["deletionGracePeriodSeconds"] == 0
    await _dependent_until(api, "dying")
    owner = await _metadata(api, "configmaps", "owner")
    assert owner is not None
    assert owner["finalizers"] == ["foregroundDeletion"]
    await api.admin.patch(api.path("secrets", "dependent"), {"metadata": {"finalizers": None}})
    await _gone(api)


async def test_in_the_foreground_another_dependent_is_not_waited_for(api: BareApi) -> None:
    await _dependent(api, await _owner(api), held=True)
    await _delete(api, "Foreground")
    await _gone(api)
    assert HOLD in (await _dependent_until(api, "dying"))["finalizers"]


async def test_an_orphan_loses_its_owner_and_stays(api: BareApi) -> None:
    await _dependent(api, await _owner(api))
    assert (await _delete(api, "Orphan"))["metadata"]["finalizers"] == ["orphan"]
    await _gone(api)
    await _dependent_until(api, "free")


async def test_a_dependent_of_an_owner_that_never_was_goes(api: BareApi) -> None:
    await _dependent(api, {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "u-never"})
    await _dependent_until(api, "gone")


async def test_a_dependent_of_another_owner_of_the_name_goes(api: BareApi) -> None:
    await _dependent(api, await _owner(api) | {"uid": "u-other"})
    await _dependent_until(api, "gone")


async def test_a_dependent_with_an_owner_left_loses_the_other(api: BareApi) -> None:
    owner = await _owner(api)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "u-never"}
    metadata = {"name": "dependent", "ownerReferences": [owner, other]}
    assert (await api.admin.post(api.path("secrets"), {"metadata": metadata})).status == 201
    async with asyncio.timeout(20):
        while True:
            found = await _metadata(api, "secrets", "dependent")
            assert found is not None
            if len(found["ownerReferences"]) == 1:
                break
            await asyncio.sleep(0.05)
    assert found["ownerReferences"][0]["uid"] == owner["uid"]
