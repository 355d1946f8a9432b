"""A custom kind for one test, on either API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.support.server import apiserver
from tests.support.server.bareapi import BareApi
from tests.support.server.conformance_rows import served
from tests.support.server.raw_client import JsonResponse, RawClient

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NOT_FOUND = 404
#: The number of polls and the seconds between them.
_POLLS, _INTERVAL = 200, 0.05


async def define(api: BareApi, *, schema: dict[str, Any] = _ANYTHING, **version: Any) -> str:
    """Create a kind Widget in the test's group with these fields of its version; return the path of its objects."""
    group = f"{api.word}.example.io"
    definition = apiserver.definition("widgets", "Widget", schema, group=group, **version)
    definition["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["things"]}
    await served(api, definition)
    return api.path("widgets", group=group)


async def drop(api: BareApi) -> None:
    """Delete the kind and all its objects."""
    await api.admin.delete(f"{apiserver.DEFINITIONS}/widgets.{api.word}.example.io")


def widget(api: BareApi, name: str, **content: Any) -> dict[str, Any]:
    """Return an object of the kind."""
    return {"apiVersion": f"{api.word}.example.io/v1", "kind": "Widget", "metadata": {"name": name}} | content


async def until(
    api: BareApi, path: str, is_so: Callable[[JsonResponse], bool], *, wire: RawClient | None = None
) -> JsonResponse:
    """Poll a path, as an administrator by default, until the response is as expected."""
    for _ in range(_POLLS):
        answer = await (wire or api.admin).get(path)
        if is_so(answer):
            return answer
        await asyncio.sleep(_INTERVAL)
    raise AssertionError(f"{path} is still {answer.status}: {answer.body}")


def is_not_found(answer: JsonResponse) -> bool:
    """Return True if the response is 404."""
    return answer.status == _NOT_FOUND
