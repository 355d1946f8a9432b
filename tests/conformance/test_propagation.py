"""Garbage collection: background and foreground propagation."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.programs.polling import eventually
from tests.support.server.bareapi import BareApi

pytestmark = pytest.mark.servers

HOLD = "example.io/hold"


async def _owner(api: BareApi) -> dict[str, str]:
    """Create an owner and return a reference to it."""
    answer = await api.admin.post(api.path("configmaps"), {"metadata": {"name": "owner"}})
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": answer.body["metadata"]["uid"]}


async def _dependent(api: BareApi, owner: dict[str, Any], *, held: bool = False) -> None:
    metadata = {"name": "dependent", "ownerReferences": [owner], "finalizers": [HOLD] if held else []}
    assert (await api.admin.post(api.path("secrets"), {"metadata": metadata})).status == 201


async def _metadata(api: BareApi, plural: str, name: str) -> dict[str, Any] | None:
    """Return an object's metadata, None if it is not found."""
    answer = await api.admin.get(api.path(plural, name))
    return answer.body["metadata"] if answer.status == 200 else None


async def _dependent_when(api: BareApi, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the dependent's metadata, empty without a dependent, once it is as wanted."""

    async def poll() -> list[dict[str, Any]]:
        found = await _metadata(api, "secrets", "dependent") or {}
        return [found] if is_so(found) else []

    (metadata,) = await eventually(poll, seconds=20)
    found: dict[str, Any] = metadata
    return found


async def _dependent_deleted(api: BareApi) -> None:
    await _dependent_when(api, operator.not_)


async def _delete(api: BareApi, propagation: str) -> dict[str, Any]:
    answer = await api.admin.delete(api.path("configmaps", "owner"), {"propagationPolicy": propagation})
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.body
    return body


async def _owner_deleted(api: BareApi) -> None:
    async def is_deleted() -> bool:
        return await _metadata(api, "configmaps", "owner") is None

    await eventually(is_deleted, seconds=20)


async def test_background_deletes_the_owner_first(api: BareApi) -> None:
    await _dependent(api, await _owner(api))
    assert (await _delete(api, "Background"))["status"] == "Success"
    assert await _metadata(api, "configmaps", "owner") is None
    await _dependent_deleted(api)


async def test_foreground_deletes_blocking_dependents_first(api: BareApi) -> None:
    await _dependent(api, await _owner(api) | {"blockOwnerDeletion": True}, held=True)
    terminating = await _delete(api, "Foreground")
    assert terminating["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert terminating["metadata"]["deletionGracePeriodSeconds"] == 0
    await _dependent_when(api, lambda found: "deletionTimestamp" in found)
    owner = await _metadata(api, "configmaps", "owner")
    assert owner is not None
    assert owner["finalizers"] == ["foregroundDeletion"]
    await api.admin.patch(api.path("secrets", "dependent"), {"metadata": {"finalizers": None}})
    await _owner_deleted(api)


async def test_foreground_ignores_dependents_that_do_not_block(api: BareApi) -> None:
    await _dependent(api, await _owner(api), held=True)
    await _delete(api, "Foreground")
    await _owner_deleted(api)
    assert HOLD in (await _dependent_when(api, lambda found: "deletionTimestamp" in found))["finalizers"]


@pytest.mark.parametrize("change", [{"name": "never"}, {"uid": "u-other"}], ids=["missing owner", "another uid"])
async def test_dependent_without_its_owner_is_deleted(api: BareApi, change: dict[str, str]) -> None:
    await _dependent(api, await _owner(api) | change)
    await _dependent_deleted(api)
