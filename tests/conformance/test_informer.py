"""What an informer shows, and what it asks for: the real server streams its lists, the embedded one refuses that."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.tiers import REAL
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.informer import Informer
from upgrade_manager.kube.objects import name, resource_version
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from tests.support.bareapi import BareApi
    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

pytestmark = pytest.mark.servers

#: In seconds, of a real server on a busy machine.
PATIENCE = 30.0


class Noted:
    """A transport that notes what kind of reading each request is."""

    def __init__(self, inner: Transport) -> None:
        self.asked: list[str] = []
        self._inner = inner

    async def send(self, request: Request) -> Response:
        """As the protocol says."""
        if request.method == "GET":
            self.asked.append("list")
        return await self._inner.send(request)

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """As the protocol says."""
        self.asked.append("stream" if "sendInitialEvents" in dict(request.query) else "watch")
        return self._inner.open(request)


@asynccontextmanager
async def following(api: BareApi, client: Client, **options: Any) -> AsyncIterator[Informer]:
    """An informer of the test's ConfigMaps that is in sync."""
    informer = Informer(client, Selection(resource=CONFIG_MAPS, namespace=api.namespace, **options), random=Random(1))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        async with asyncio.timeout(PATIENCE):
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


#: Options; the names that are there at first; those after d and e were made and a deleted.
SELECTIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "all with a label": ({"label_selector": "of=this-test"}, "abc", "bcde"),
    "another label": ({"label_selector": "of=this-test,even=no"}, "ac", "cde"),
    "a field": ({"field_selector": "metadata.name=e"}, "", "e"),
    "metadata alone": ({"label_selector": "of=this-test", "metadata_only": True}, "abc", "bcde"),
}


@pytest.mark.parametrize(("options", "first", "then"), SELECTIONS.values(), ids=SELECTIONS.keys())
async def test_an_informer_shows_what_there_is_and_follows(
    api: BareApi, options: dict[str, Any], first: str, then: str
) -> None:
    client = Client(api.transport, user_agent="test", random=Random(1))
    for called, even in (("a", "no"), ("b", "yes"), ("c", "no")):
        await client.create(CONFIG_MAPS, config_map(called, even=even), namespace=api.namespace)
    async with following(api, client, **options) as informer:
        assert [name(obj) for obj in informer.store.list()] == [*first]
        await client.create(CONFIG_MAPS, config_map("d", even="no"), namespace=api.namespace)
        await client.delete(CONFIG_MAPS, "a", namespace=api.namespace)
        written = await client.create(CONFIG_MAPS, config_map("e", even="no"), namespace=api.namespace)
        assert await informer.wait_for_version(resource_version(written), timeout=PATIENCE)
        assert [name(obj) for obj in informer.store.list()] == [*then]
        assert all(("data" in obj) is not options.get("metadata_only", False) for obj in informer.store.list())


async def test_a_server_that_streams_needs_one_request_an_informer_and_any_other_is_asked_only_once(
    api: BareApi,
) -> None:
    wire = Noted(api.transport)
    client = Client(wire, user_agent="test", random=Random(1))
    async with following(api, client), following(api, client, metadata_only=True):
        # The watch after a list is opened when the list has been shown.
        await asyncio.sleep(0.1)
        streamed = ["stream", "stream"]
        assert wire.asked == (streamed if api.server == REAL else ["stream", "list", "watch", "list", "watch"])
