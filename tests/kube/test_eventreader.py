from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.kube_server import (
    FedStream,
    event,
    listing,
    node,
)
from tests.support.reflecting import reflecting, scripted
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


ODD = {
    "another kind": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "resourceVersion": "9"}},
    "a Table": {"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": {"resourceVersion": "9"}},
    "no metadata": {"apiVersion": "v1", "kind": "Node"},
    "no resourceVersion": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}},
}


@pytest.mark.parametrize("obj", ODD.values(), ids=ODD.keys())
async def test_an_unexpected_object_is_skipped_and_the_stream_kept(obj: Object) -> None:
    stream = FedStream(event("ADDED", obj), event("ADDED", node("a", 7)))
    async with reflecting(scripted(stream)) as run:
        assert run.store.calls == [("replace", ""), ("put", "a")]
        assert run.store.versions == ["5", "5", "7"]
        assert len(run.requests()) == 2


async def test_an_unknown_type_of_event_moves_the_version_only() -> None:
    async with reflecting(scripted(FedStream(event("SPARKLED", node("a", 7))))) as run:
        assert run.store.calls == [("replace", "")]
        assert run.store.versions == ["5", "7"]


async def test_whole_objects_where_metadata_was_asked_for_are_refused_and_not_kept() -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "resourceVersion": "7"},
        "data": {"k": "v"},
    }
    selection = Selection(resource=SECRETS, metadata_only=True)
    transport = scripted(FedStream(event("ADDED", secret)))
    async with reflecting(transport, seconds=5, selection=selection) as run:
        assert run.store.calls == [("replace", "")] * 2
        assert run.watch_endings == ["error"]
        assert transport.requests[0].headers["accept"].startswith("application/json;as=PartialObjectMetadataList;")
        assert transport.requests[1].headers["accept"].startswith("application/json;as=PartialObjectMetadata;")
    transport = scripted(lists=[listing(secret), listing()])
    async with reflecting(transport, seconds=5, selection=selection) as run:
        assert run.store.calls == [("replace", "")]


async def test_metadata_is_handed_on_under_its_own_kind() -> None:
    kept: list[Object] = []
    meta = {"name": "s", "resourceVersion": "7"}
    partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": meta}
    transport = scripted()
    selection = Selection(resource=SECRETS, metadata_only=True, namespace="fleet-local")
    stream = FedStream()
    transport.watches.append(stream)
    async with reflecting(transport, selection=selection) as run:
        run.store.put = kept.append  # type: ignore[assignment,method-assign]
        stream.feed(event("ADDED", partial))
        await asyncio.sleep(0.001)
    assert kept == [{"apiVersion": "v1", "kind": "Secret", "metadata": meta}]
    assert transport.requests[0].path == "/api/v1/namespaces/fleet-local/secrets"
