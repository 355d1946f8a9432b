"""A reflector between a scripted server and a recording store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.server.kube_server import Reply, ScriptedTransport, background, event, listing, status_object
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.reflector import Reflector
from upgrade_manager.kube.resources import NODES

#: Shortest and longest wait in seconds: none, and one step of the backoff.
AT_ONCE, STEP = (0.0, 0.0), (0.8, 1.6)
TOO_LARGE: dict[str, Any] = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
#: The details of a server before 1.18.6.
OLD_TOO_LARGE: dict[str, Any] = {"causes": [{"message": "Too large resource version"}]}


@dataclass
class RecordingStore:
    """A store that records its calls."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    #: Of the last `replace`.
    items: list[Object] = field(default_factory=list)
    events: int = 0

    def transform(self, obj: Object) -> Object:
        return obj

    def replace(self, items: list[Object], _version: str) -> None:
        self.calls.append(("replace", ",".join(item["metadata"]["name"] for item in items)))
        self.items = items

    def put(self, obj: Object) -> None:
        self.calls.append(("put", obj["metadata"]["name"]))

    def delete(self, obj: Object) -> None:
        self.calls.append(("delete", obj["metadata"]["name"]))

    def advance(self, version: str, *, events: int) -> None:
        self.versions.append(version)
        self.events += events


@dataclass
class ReflectorRun:
    """A running reflector and its effects."""

    transport: ScriptedTransport
    client: Client
    store: RecordingStore = field(default_factory=RecordingStore)
    #: The reasons of lists, and how watches ended.
    list_reasons: list[str] = field(default_factory=list)
    watch_endings: list[str] = field(default_factory=list)

    def on_restart(self, operation: str, reason: str) -> None:
        (self.list_reasons if operation == "list" else self.watch_endings).append(reason)

    def requests(self) -> list[str]:
        """`list RV limit=N`, `stream RV` or `watch RV`, in order."""
        lines = []
        for query in self.transport.queries:
            version = query.get("resourceVersion", "newest")
            limit = f" limit={query['limit']}" if "limit" in query else ""
            token = f" continue={query['continue']}" if "continue" in query else ""
            verb = "stream" if "sendInitialEvents" in query else "watch" if "watch" in query else "list"
            lines.append(f"{verb} {version}{limit}{token}")
        return lines


@asynccontextmanager
async def reflecting(
    transport: ScriptedTransport,
    *,
    seconds: float = 0.0,
    selection: Selection | None = None,
    streaming: bool = False,
    client: Client | None = None,
) -> AsyncIterator[ReflectorRun]:
    """Run a reflector for so many seconds; the server has no streaming lists by default."""
    random = Random(7)
    run = ReflectorRun(transport, client or Client(transport, user_agent="test", random=random))
    others = transport.open_streams
    if not streaming:
        run.client.watch_list_support.mark_unsupported()
    reflector = Reflector(
        run.client,
        selection or Selection(resource=NODES),
        store=run.store,
        random=random,
        on_restart=run.on_restart,
    )
    async with background(reflector.run()) as task:
        await asyncio.sleep(seconds or 0.001)
        assert not task.done(), task
        yield run
    assert transport.open_streams == others


async def reflected(transport: ScriptedTransport, **options: Any) -> ReflectorRun:
    """Run a reflector to its end."""
    async with reflecting(transport, **options) as run:
        return run


def scripted(*watches: Reply, lists: list[Reply] | None = None) -> ScriptedTransport:
    """Respond with these watches, and lists at the versions 5, 30 and 40."""
    transport = ScriptedTransport()
    transport.lists.extend(lists or [listing(version="5"), listing(version="30"), listing(version="40")])
    transport.watches.extend(watches)
    return transport


def error_event(code: int, reason: str, **details: object) -> bytes:
    """Return an ERROR event with a Status."""
    return event("ERROR", status_object(code, reason, message="no", details=details))
