"""A custom kind for one test, on either API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.bareapi import BareApi
    from tests.support.raw_client import JsonResponse, RawClient

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_CREATED = 201
_OK = 200
_NOT_FOUND = 404
#: The number of polls and the seconds between them.
_POLLS, _INTERVAL = 200, 0.05


async def define(
    api: BareApi, *, schema: dict[str, Any] | None = None, scope: str = "Namespaced", **version: Any
) -> str:
    """Create a kind Widget in the test's group with these fields of its version; return the path of its objects."""
    group = f"{api.word}.example.io"
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or _ANYTHING}} | version
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["things"]}
    definition = {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [one]},
    }
    answer = await api.admin.post(DEFINITIONS, definition)
    assert answer.status == _CREATED, answer.body
    await until(api, f"{DEFINITIONS}/widgets.{group}", _is_established)
    path = api.path("widgets", group=group) if scope == "Namespaced" else f"/apis/{group}/v1/widgets"
    await until(api, path, lambda answer: answer.status == _OK)
    return path


async def drop(api: BareApi) -> None:
    """Delete the kind and all its objects."""
    await api.admin.delete(f"{DEFINITIONS}/widgets.{api.word}.example.io")


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
    """Whether the response is 404."""
    return answer.status == _NOT_FOUND


def _is_established(answer: JsonResponse) -> bool:
    conditions = (answer.body.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
