"""What another server calls the same: versions, uids and names that a server makes up differ from run to run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Request

_VERSION = re.compile(rb'"resourceVersion": ?"(\d+)"')
#: Whatever may be a uid or a name.
_WORD = re.compile(rb"[a-z0-9][a-z0-9.-]*")
#: A version that every server has.
_ANY = "0"


class Translation:
    """Learns from pairs of answers to the same request, and rewrites requests."""

    def __init__(self) -> None:
        self._versions: dict[bytes, bytes] = {}
        self._words: dict[bytes, bytes] = {}

    def learn_objects(self, then: Iterable[Object], now: Iterable[Object]) -> None:
        """Take in two inventories; objects of the same kind and name are the same."""
        here = {_identity(obj): obj for obj in now}
        for obj in then:
            if _identity(obj) in here:
                self._pair(obj, here[_identity(obj)])

    def learn(self, then: bytes, now: bytes) -> None:
        """Take in two answers to one request."""
        before, after = _parsed(then), _parsed(now)
        self._pair(before, after)
        if isinstance(before.get("items"), list) and isinstance(after.get("items"), list):
            self.learn_objects(before["items"], after["items"])

    def translate(self, request: Request) -> Request:
        """The request as whoever sent it would have sent it here."""
        query = tuple((key, self._at(value) if key == "resourceVersion" else value) for key, value in request.query)
        path = self._worded(request.path.encode()).decode()
        body = _VERSION.sub(self._pinned, self._worded(request.body)) if request.body else request.body
        return replace(request, path=path, query=query, body=body)

    def _pair(self, then: Object, now: Object) -> None:
        self._note(self._versions, objects.resource_version(then), objects.resource_version(now))
        self._note(self._words, objects.uid(then), objects.uid(now))
        self._note(self._words, objects.name(then), objects.name(now))

    @staticmethod
    def _note(where: dict[bytes, bytes], then: str, now: str) -> None:
        if then and now and then != now:
            where[then.encode()] = now.encode()

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


def _parsed(answer: bytes) -> dict[str, Any]:
    try:
        found = json.loads(answer)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
