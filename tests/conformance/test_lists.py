"""Lists: pages, continue tokens, resourceVersions."""

from __future__ import annotations

import pytest

from tests.support.server.bareapi import BareApi

pytestmark = pytest.mark.servers

FUTURE = "999999999"


async def secrets(api: BareApi) -> str:
    """Create a to g, the first three labelled x."""
    path = api.path("secrets")
    for name in "abcdefg":
        answer = await api.admin.post(path, {"metadata": {"name": name, "labels": {"app": "x" if name < "d" else "y"}}})
        assert answer.status == 201
    return path


async def test_page_has_the_remaining_item_count(api: BareApi) -> None:
    page = await api.admin.get(await secrets(api), limit="2")
    assert page.names == ["a", "b"]
    assert page.body["metadata"]["remainingItemCount"] == 5
    assert page.body["metadata"]["continue"]


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


async def test_version_0_ignores_the_limit(api: BareApi) -> None:
    page = await api.admin.get(await secrets(api), limit="2", resourceVersion="0")
    assert page.names == list("abcdefg")


async def test_list_at_a_future_version_times_out(api: BareApi) -> None:
    answer = await api.admin.get(api.path("secrets"), resourceVersion=FUTURE)
    assert (answer.status, answer.body["reason"], answer.headers["retry-after"]) == (504, "Timeout", "1")
    assert answer.body["message"].startswith(f"Timeout: Too large resource version: {FUTURE}, current: ")
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert answer.body["details"] == {"causes": [cause], "retryAfterSeconds": 1}


@pytest.mark.parametrize("version", ["abc", "-1"])
async def test_invalid_version_is_refused(api: BareApi, version: str) -> None:
    path = await secrets(api)
    message = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
    listed = await api.admin.get(path, resourceVersion=version)
    assert (listed.status, listed.body["reason"]) == (400, "BadRequest")
    assert listed.body["message"] == f"invalid resource version: {message}"
    for answer in (
        await api.admin.get(f"{path}/a", resourceVersion=version),
        await api.admin.get(path, resourceVersion=version, watch="true"),
    ):
        assert (answer.status, answer.body["message"]) == (500, message)
        assert "reason" not in answer.body
