"""A reflector between a scripted server and a sink that writes everything down."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.kube_server import Reply, ScriptedTransport, event, listing, status_object
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.observer import InformerObserver
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.reflector import Reflector
from upgrade_manager.kube.resources import NODES
from upgrade_manager.kube.retry import Backoff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: Shortest and longest wait in seconds: none, and one step of the backoff.
AT_ONCE, STEP = (0.0, 0.0), (0.8, 1.6)


@dataclass
class Recorded:
    """A sink that writes down what it is told."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    #: What `replace` was given last.
    items: list[Object] = field(default_factory=list)

    def prepare(self, obj: Object) -> Object:
        return obj

    def replace(self, items: list[Object], version: str) -> None:
        self.calls.append(("replace", ",".join(item["metadata"]["name"] for item in items)))
        self.versions.append(version)
        self.items = items

    def put(self, obj: Object) -> None:
        self.calls.append(("put", obj["metadata"]["name"]))

    def drop(self, obj: Object) -> None:
        self.calls.append(("drop", obj["metadata"]["name"]))

    def advance(self, version: str) -> None:
        self.versions.append(version)


@dataclass
class Heard(InformerObserver):
    """An observer that writes down why lists and watches began."""

    relists: list[str] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)
    events: int = 0

    def relisted(self, resource: str, *, reason: str) -> None:
        assert resource
        self.relists.append(reason)

    def watch_restarted(self, resource: str, *, reason: str) -> None:
        assert resource
        self.endings.append(reason)

    def events_received(self, resource: str, *, count: int) -> None:
        assert resource
        self.events += count


@dataclass
class Run:
    """A reflector at work, and what can be seen of it."""

    transport: ScriptedTransport
    client: Client
    sink: Recorded
    heard: Heard

    def requests(self) -> list[str]:
        """`list RV limit=N`, `stream RV` or `watch RV`, in order."""
        told = []
        for query in self.transport.asked:
            version = query.get("resourceVersion", "newest")
            limit = f" limit={query['limit']}" if "limit" in query else ""
            token = f" continue={query['continue']}" if "continue" in query else ""
            verb = "stream" if "sendInitialEvents" in query else "watch" if "watch" in query else "list"
            told.append(f"{verb} {version}{limit}{token}")
        return told


@asynccontextmanager
async def reflecting(
    transport: ScriptedTransport,
    *,
    seconds: float = 0.0,
    resource: Resource = NODES,
    selection: Selection | None = None,
    streaming: bool = False,
    client: Client | None = None,
) -> AsyncIterator[Run]:
    """A reflector that has run for so many seconds; of a server without streaming lists, if not said otherwise."""
    random = Random(7)
    client = client or Client(transport, user_agent="test", random=random)
    run = Run(transport, client, Recorded(), Heard())
    others = transport.open_streams
    if not streaming:
        client.watch_lists.were_refused()
    reflector = Reflector(
        client,
        resource,
        selection or Selection(),
        sink=run.sink,
        backoff=Backoff(random=random),
        random=random,
        observer=run.heard,
    )
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(seconds or 0.001)
    assert not task.done(), task
    try:
        yield run
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert transport.open_streams == others


def scripted(*watches: Reply, lists: list[Reply] | None = None) -> ScriptedTransport:
    """Watches to answer with, and lists at the versions 5, 30 and 40."""
    transport = ScriptedTransport()
    transport.lists.extend(lists or [listing(version="5"), listing(version="30"), listing(version="40")])
    transport.watches.extend(watches)
    return transport


def error_event(code: int, reason: str, **details: object) -> bytes:
    """An ERROR event with a Status."""
    return event("ERROR", status_object(code, reason, message="no", details=details))
