"""Paged lists and their continue tokens."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kinds import define, drop, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

OUTDATED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


async def secrets(api: BareApi, names: str = "abcdefg") -> str:
    path = api.path("secrets")
    for name in names:
        answer = await api.admin.post(path, {"metadata": {"name": name, "labels": {"app": "x" if name < "d" else "y"}}})
        assert answer.status == 201
    return path


def token(**content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def opened(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return value


async def test_page_has_the_remaining_item_count(api: BareApi) -> None:
    page = await api.admin.get(await secrets(api), limit="2")
    assert page.names == ["a", "b"]
    assert page.body["metadata"]["remainingItemCount"] == 5
    assert page.body["metadata"]["continue"]


async def test_selected_page_has_no_remaining_item_count(api: BareApi) -> None:
    page = await api.admin.get(await secrets(api), limit="2", labelSelector="app=x")
    assert page.names == ["a", "b"]
    assert set(page.body["metadata"]) == {"continue", "resourceVersion"}


async def test_all_pages_show_the_version_of_the_first(api: BareApi) -> None:
    path = await secrets(api)
    first = await api.admin.get(path, limit="2")
    await api.admin.post(path, {"metadata": {"name": "bb"}})
    await api.admin.delete(f"{path}/d")
    second = await api.admin.get(path, limit="3", **{"continue": first.body["metadata"]["continue"]})
    third = await api.admin.get(path, limit="3", **{"continue": second.body["metadata"]["continue"]})
    assert (second.names, third.names) == (["c", "d", "e"], ["f", "g"])
    assert first.version == second.version == third.version
    assert second.body["metadata"]["remainingItemCount"] == 2
    assert set(third.body["metadata"]) == {"resourceVersion"}


async def test_continue_without_limit_returns_the_rest(api: BareApi) -> None:
    path = await secrets(api)
    first = await api.admin.get(path, limit="2")
    rest = await api.admin.get(path, **{"continue": first.body["metadata"]["continue"]})
    assert rest.names == ["c", "d", "e", "f", "g"]


async def test_unreached_limit_returns_no_token(api: BareApi) -> None:
    page = await api.admin.get(await secrets(api), limit="500")
    assert set(page.body["metadata"]) == {"resourceVersion"}


async def test_version_0_ignores_the_limit(api: BareApi) -> None:
    page = await api.admin.get(await secrets(api), limit="2", resourceVersion="0")
    assert page.names == list("abcdefg")


async def test_token_with_a_resource_version_is_refused(api: BareApi) -> None:
    path = await secrets(api)
    first = await api.admin.get(path, limit="2")
    answer = await api.admin.get(path, resourceVersion="5", **{"continue": first.body["metadata"]["continue"]})
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"] == "specifying resource version is not allowed when using continue"


async def test_token_of_another_version_is_refused(api: BareApi) -> None:
    given = token(v="v2", rv=5, start="/x")
    answer = await api.admin.get(api.path("secrets"), limit="2", **{"continue": given})
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    text = "invalid continue token: continue key is not valid: server does not recognize this encoded version v2"
    assert answer.body["message"].startswith(text)


async def test_expired_token_returns_one_for_the_current_rest(api: BareApi) -> None:
    before = int((await api.admin.get(api.path("secrets"))).version)
    path = await define(api)
    for name in "abcd":
        await api.admin.post(path, widget(api, name))
    page = await api.admin.get(path, limit="2")
    await api.admin.post(path, widget(api, "bb"))
    api.storage.compact()
    old = opened(page.body["metadata"]["continue"]) | {"rv": before}
    answer = await api.admin.get(path, limit="2", **{"continue": token(**old)})
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (410, "Expired", 410)
    assert answer.body["message"] == OUTDATED
    again = answer.body["metadata"]["continue"]
    assert opened(again)["rv"] == -1
    rest = await api.admin.get(path, limit="2", **{"continue": again})
    assert (rest.status, rest.names) == (200, ["bb", "c"])
    assert int(rest.version) > int(page.version)
    assert rest.body["metadata"]["remainingItemCount"] == 1
    last = await api.admin.get(path, limit="2", **{"continue": rest.body["metadata"]["continue"]})
    assert (last.names, last.version) == (["d"], rest.version)
    await drop(api)
