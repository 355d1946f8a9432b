from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.toolkit.toolkit import NODE, ToolkitWorld, toolkit_world
from upgrade_manager.kube.errors import Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import EVENTS, NODES
from upgrade_manager.toolkit.vms.drain_taint import (
    drain_taint_present,
    remove_drain_taint,
    set_drain_taint,
    set_drain_taint_again,
)

DRAIN = {"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}
OTHER = {"key": "example.com/other", "effect": "NoSchedule"}
OTHER_EFFECT = {"key": "kubevirt.io/drain", "effect": "PreferNoSchedule"}
OTHER_VALUE = {"key": "kubevirt.io/drain", "value": "by-hand", "effect": "NoSchedule"}


@asynccontextmanager
async def tainted(folder: Path, *taints: dict[str, Any]) -> AsyncIterator[ToolkitWorld]:
    async with toolkit_world(folder) as world:
        await world.client.patch(NODES, NODE, MergePatch({"spec": {"taints": list(taints)}}))
        yield world


async def taints_of(world: ToolkitWorld) -> list[dict[str, Any]]:
    return (await world.client.get(NODES, NODE))["spec"].get("taints") or []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], [DRAIN], id="no-taint"),
        pytest.param([OTHER], [OTHER, DRAIN], id="other-taint"),
        pytest.param([OTHER_EFFECT], [OTHER_EFFECT, DRAIN], id="other-effect"),
        pytest.param([OTHER_VALUE], [OTHER_VALUE], id="other-value"),
        pytest.param([DRAIN, OTHER], [DRAIN, OTHER], id="present"),
    ],
)
async def test_set(tmp_path: Path, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    async with tainted(tmp_path, *before) as world:
        context = world.context()
        await set_drain_taint(context)
        assert await taints_of(world) == after
        assert await drain_taint_present(context) == "node node-0 has the taint kubevirt.io/drain"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], [], id="no-taint"),
        pytest.param([DRAIN], [], id="only-taint"),
        pytest.param([OTHER_EFFECT, OTHER, DRAIN], [OTHER], id="all-effects"),
    ],
)
async def test_remove(tmp_path: Path, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    async with tainted(tmp_path, *before) as world:
        context = world.context()
        await remove_drain_taint(context)
        assert await taints_of(world) == after
        assert await drain_taint_present(context) == ""


@pytest.mark.parametrize("change", [set_drain_taint, remove_drain_taint])
async def test_taint_of_another_writer_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    async with tainted(tmp_path, *([DRAIN] if change is remove_drain_taint else [])) as world:
        get = world.client.get

        async def get_before_a_change(*arguments: Any, **options: Any) -> Any:
            node = await get(*arguments, **options)
            await world.client.patch(NODES, NODE, MergePatch({"spec": {"taints": [OTHER]}}))
            return node

        with monkeypatch.context() as patched:
            patched.setattr(world.client, "get", get_before_a_change)
            with pytest.raises(Conflict):
                await change(world.context())
        assert await taints_of(world) == [OTHER]


@pytest.mark.parametrize(
    ("left", "client"),
    [
        pytest.param([OTHER], "harvester", id="recorded"),
        pytest.param([], "another client, such as Harvester's node-down controller,", id="no taint is left"),
    ],
)
async def test_client_that_removes_the_taint_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: list[dict[str, Any]], client: str
) -> None:
    async with tainted(tmp_path, DRAIN) as world:
        context, get = world.context(), world.client.get
        written: dict[str, Any] = {"f:spec": {"f:taints": {}}}
        managers = [
            {"manager": name, "operation": "Update", "time": time, "fieldsV1": written}
            for name, time in (
                ("harvester-upgrade-toolkit", "2026-01-01T00:00:02Z"),
                ("harvester", "2026-01-01T00:00:01Z"),
            )
        ]

        async def get_managed(*arguments: Any, **options: Any) -> Any:
            node = await get(*arguments, **options)
            node["metadata"] |= {"managedFields": managers if left else []}
            return node

        await set_drain_taint_again(context)
        monkeypatch.setattr(world.client, "get", get_managed)
        for _ in range(3):
            await world.client.patch(NODES, NODE, MergePatch({"spec": {"taints": left or None}}))
            await set_drain_taint_again(context)
            assert (await taints_of(world)) == [*left, DRAIN]
        monkeypatch.undo()
        (event,) = (await world.client.list(EVENTS, namespace="default")).items
        assert (event["type"], event["reason"]) == ("Normal", "DrainTaintRemoved")
        assert event["message"] == (
            f"Node node-0: {client} has removed taint kubevirt.io/drain, by which KubeVirt moves the node's VMs; it is "
            "set again at each check"
        )
