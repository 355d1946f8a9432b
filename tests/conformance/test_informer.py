"""Informers on both servers: the real one streams initial lists, the embedded one refuses that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any

import pytest

from hack.faults.forwarding import Forwarding
from tests.support.server.bareapi import BareApi
from tests.support.tiers import REAL
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.objects import name, resource_version
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.kube.transport import Request, Stream, Transport

pytestmark = pytest.mark.servers

#: Seconds for a real server on a busy machine.
SYNC_TIMEOUT = 30.0


class RecordingTransport(Forwarding):
    """Record whether each read is a list, a watch or a streaming list."""

    def __init__(self, inner: Transport) -> None:
        self.requests: list[str] = []
        super().__init__(inner)

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        query = dict(request.query)
        self.requests.append("stream" if "sendInitialEvents" in query else "watch" if "watch" in query else "list")
        return self._inner.open(request)


@asynccontextmanager
async def following(api: BareApi, client: Client, **options: Any) -> AsyncIterator[Informer]:
    """Run an informer of the test's ConfigMaps and wait until it is in sync."""
    informer = Informer(client, Selection(resource=CONFIG_MAPS, namespace=api.namespace, **options), random=Random(1))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        async with asyncio.timeout(SYNC_TIMEOUT):
            await informer.wait_for_sync()
        yield informer
        task.cancel()


def config_map(called: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": called, "labels": {"of": "this-test", **labels}},
        "data": {"key": "value"},
    }


#: Options; initial names; names after d and e were created and a deleted.
SELECTIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "all with a label": ({"label_selector": "of=this-test"}, "abc", "bcde"),
    "another label": ({"label_selector": "of=this-test,even=no"}, "ac", "cde"),
    "a field": ({"field_selector": "metadata.name=e"}, "", "e"),
    "metadata alone": ({"label_selector": "of=this-test", "metadata_only": True}, "abc", "bcde"),
}


@pytest.mark.parametrize(("options", "first", "then"), SELECTIONS.values(), ids=SELECTIONS.keys())
async def test_informer_store_follows_the_server(api: BareApi, options: dict[str, Any], first: str, then: str) -> None:
    client = Client(api.transport, user_agent="test", random=Random(1))
    for called, even in (("a", "no"), ("b", "yes"), ("c", "no")):
        await client.create(CONFIG_MAPS, config_map(called, even=even), namespace=api.namespace)
    async with following(api, client, **options) as informer:
        assert [name(obj) for obj in informer.store.list()] == [*first]
        await client.create(CONFIG_MAPS, config_map("d", even="no"), namespace=api.namespace)
        await client.delete(CONFIG_MAPS, "a", namespace=api.namespace)
        written = await client.create(CONFIG_MAPS, config_map("e", even="no"), namespace=api.namespace)
        assert await informer.wait_for_version(resource_version(written), timeout=SYNC_TIMEOUT)
        assert [name(obj) for obj in informer.store.list()] == [*then]
        assert all(("data" in obj) is not options.get("metadata_only", False) for obj in informer.store.list())


async def test_streaming_list_is_tried_once(
    api: BareApi,
) -> None:
    wire = RecordingTransport(api.transport)
    client = Client(wire, user_agent="test", random=Random(1))
    async with following(api, client), following(api, client, metadata_only=True):
        # The watch opens after the list is in the store.
        await asyncio.sleep(0.1)
        streamed = ["stream", "stream"]
        assert wire.requests == (streamed if api.server == REAL else ["stream", "list", "watch", "list", "watch"])
