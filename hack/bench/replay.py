"""The API requests of a recorded run, sent again to a fresh server: the cost of the API server alone.

Another server assigns other uids, names and versions. `Translation` learns them from the responses.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hack.bench.recorder import Exchange
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request, Transport

#: The share of responses that must have the recorded status.
MIN_FIDELITY = 0.95
_VERSION = re.compile(rb'"resourceVersion": ?"(\d+)"')
#: Candidates for uids and names.
_WORD = re.compile(rb"[a-z0-9][a-z0-9.-]*")
#: A version that every server has.
_ANY = "0"


class UnfaithfulReplay(Exception):
    """The server's responses differ from the recorded ones, so the time is meaningless."""


async def replay(server: Transport, exchanges: Sequence[Exchange], translation: Translation) -> None:
    """Send all requests one after another; watches stay open and are read to the end. Raises UnfaithfulReplay."""
    same = 0
    async with asyncio.TaskGroup() as group:
        readers = []
        for exchange in exchanges:
            request = translation.translate(exchange.request)
            if exchange.watches:
                opened = asyncio.Event()
                readers.append(group.create_task(_read(server, request, opened)))
                await opened.wait()
                same += 1
            else:
                response = await server.send(request)
                same += response.status == exchange.status
                if exchange.writes:
                    translation.learn(exchange.body, response.body)
            # Watches are read and the server's controllers run between two requests, as they did in the run.
            await asyncio.sleep(0)
        for reader in readers:
            reader.cancel()
    if same < MIN_FIDELITY * len(exchanges):
        raise UnfaithfulReplay(f"only {same} of {len(exchanges)} responses have the recorded status")


async def _read(server: Transport, request: Request, opened: asyncio.Event) -> None:
    async with server.open(request) as stream:
        opened.set()
        async for _ in stream.chunks():
            pass


class Translation:
    """Learns from pairs of responses to the same request, and rewrites requests."""

    def __init__(self) -> None:
        self._versions: dict[bytes, bytes] = {}
        self._words: dict[bytes, bytes] = {}

    def learn_objects(self, recorded: Iterable[Object], current: Iterable[Object]) -> None:
        """Learn from two lists; objects of the same kind and name correspond."""
        known = {_identity(obj): obj for obj in current}
        for obj in recorded:
            if _identity(obj) in known:
                self._pair(obj, known[_identity(obj)])

    def learn(self, recorded: bytes, current: bytes) -> None:
        """Learn from two response bodies."""
        before, after = _parsed(recorded), _parsed(current)
        self._pair(before, after)
        if isinstance(before.get("items"), list) and isinstance(after.get("items"), list):
            self.learn_objects(before["items"], after["items"])

    def translate(self, request: Request) -> Request:
        """Return the request with this server's uids, names and versions."""
        query = tuple((key, self._at(value) if key == "resourceVersion" else value) for key, value in request.query)
        path = self._worded(request.path.encode()).decode()
        body = _VERSION.sub(self._pinned, self._worded(request.body)) if request.body else request.body
        return replace(request, path=path, query=query, body=body)

    def _pair(self, recorded: Object, current: Object) -> None:
        for known, read in (
            (self._versions, objects.resource_version),
            (self._words, objects.uid),
            (self._words, objects.name),
        ):
            before, after = read(recorded), read(current)
            if before and after and before != after:
                known[before.encode()] = after.encode()

    def _worded(self, text: bytes) -> bytes:
        return _WORD.sub(lambda found: self._words.get(found[0], found[0]), text)

    def _at(self, value: str) -> str:
        if value in {"", _ANY}:
            return value
        return self._versions.get(value.encode(), _ANY.encode()).decode()

    def _pinned(self, found: re.Match[bytes]) -> bytes:
        return b'"resourceVersion":"' + self._versions.get(found[1], found[1]) + b'"'


def _identity(obj: Object) -> tuple[str, str, str, str]:
    return str(obj.get("apiVersion", "")), str(obj.get("kind", "")), objects.namespace(obj), objects.name(obj)


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
