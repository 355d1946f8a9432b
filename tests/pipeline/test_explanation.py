from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Forbidden, KubeError, Throttled, Transient
from upgrade_manager.kube.resources import PODS
from upgrade_manager.pipeline.explanation import PATIENCE, explaining

if TYPE_CHECKING:
    from tests.support.harvester import Harvester

PLACE = "harvester-system"


async def test_the_selected_objects_are_given(cluster: Harvester) -> None:
    for name in ("one", "two"):
        metadata = {"name": name, "namespace": PLACE, "labels": {"app": name}}
        await cluster.put(PODS, {"metadata": metadata, "spec": {"containers": [{"name": "x", "image": "x"}]}})
    found = await explaining(cluster.client, PODS, namespace=PLACE, label_selector="app=two")
    assert [pod["metadata"]["name"] for pod in found] == ["two"]
    found = await explaining(cluster.client, PODS, namespace=PLACE, field_selector="metadata.name=one")
    assert [pod["metadata"]["name"] for pod in found] == ["one"]


@pytest.mark.parametrize(
    "error",
    [Transient("down"), Forbidden("no"), Throttled("later", retry_after=1.0)],
    ids=["down", "forbidden", "throttled"],
)
async def test_what_cannot_be_read_explains_nothing(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: KubeError
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(cluster.client, "list", refuse)
    assert list(await explaining(cluster.client, PODS, namespace=PLACE)) == []


async def test_what_does_not_come_soon_is_not_waited_for(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(cluster.client, "list", hang)
    began = loop_time()
    assert list(await explaining(cluster.client, PODS, namespace=PLACE)) == []
    assert loop_time() - began == pytest.approx(PATIENCE)
