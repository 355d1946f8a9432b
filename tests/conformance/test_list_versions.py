"""Lists and gets at a resourceVersion: any, future, invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

FUTURE = "999999999"


async def secrets(api: BareApi) -> str:
    """Create a, b and c; return the path."""
    path = api.path("secrets")
    for name in "abc":
        await api.admin.post(path, {"metadata": {"name": name}})
    return path


async def test_version_0_lists_the_cache(api: BareApi) -> None:
    path = await secrets(api)
    await api.admin.get(path)  # brings the cache up to date
    assert (await api.admin.get(path, resourceVersion="0")).names == list("abc")


async def test_list_at_a_future_version_times_out(api: BareApi) -> None:
    answer = await api.admin.get(api.path("secrets"), resourceVersion=FUTURE)
    assert (answer.status, answer.body["reason"], answer.headers["retry-after"]) == (504, "Timeout", "1")
    assert answer.body["message"].startswith(f"Timeout: Too large resource version: {FUTURE}, current: ")
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert answer.body["details"] == {"causes": [cause], "retryAfterSeconds": 1}


async def test_get_at_a_future_version_times_out(api: BareApi) -> None:
    path = await secrets(api)
    answer = await api.admin.get(f"{path}/a", resourceVersion=FUTURE)
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")
    assert (await api.admin.get(f"{path}/a", resourceVersion="0")).status == 200


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
