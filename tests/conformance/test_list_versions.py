"""Lists and gets at a resourceVersion: any, exact, not older, future, invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kinds import define, drop

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

FUTURE = "999999999"


async def secrets(api: BareApi) -> tuple[str, str]:
    """Create a, b and c; return the path and the version before c."""
    path = api.path("secrets")
    for name in "ab":
        await api.admin.post(path, {"metadata": {"name": name}})
    version = (await api.admin.get(path)).version
    await api.admin.post(path, {"metadata": {"name": "c"}})
    return path, version


@pytest.mark.parametrize(
    ("given", "names", "same"),
    [
        pytest.param({}, "abc", False, id="default"),
        pytest.param({"resourceVersionMatch": "NotOlderThan"}, "abc", False, id="not older"),
        pytest.param({"resourceVersionMatch": "NotOlderThan", "limit": "2"}, "ab", False, id="page, not older"),
        pytest.param({"resourceVersionMatch": "Exact"}, "ab", True, id="exact"),
        pytest.param({"resourceVersionMatch": "Exact", "limit": "1"}, "a", True, id="page, exact"),
        pytest.param({"limit": "5"}, "ab", True, id="limit implies exact"),
    ],
)
async def test_list_at_a_version(api: BareApi, given: dict[str, str], names: str, same: bool) -> None:  # noqa: FBT001
    path, version = await secrets(api)
    answer = await api.admin.get(path, resourceVersion=version, **given)
    assert answer.names == list(names)
    assert (answer.version == version) is same


@pytest.mark.parametrize("given", [{}, {"resourceVersionMatch": "NotOlderThan"}])
async def test_version_0_lists_the_cache(api: BareApi, given: dict[str, str]) -> None:
    path, _ = await secrets(api)
    await api.admin.get(path)  # brings the cache up to date
    assert (await api.admin.get(path, resourceVersion="0", **given)).names == list("abc")


async def test_compacted_version_is_expired(api: BareApi) -> None:
    before = (await api.admin.get(api.path("secrets"))).version
    path = await define(api)
    api.storage.compact()
    answer = await api.admin.get(path, resourceVersion=before, resourceVersionMatch="Exact")
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (410, "Expired", 410)
    assert answer.body["message"] == "The resourceVersion for the provided list is too old."
    await drop(api)


@pytest.mark.parametrize("given", [{}, {"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "NotOlderThan"}])
async def test_list_at_a_future_version_times_out(api: BareApi, given: dict[str, str]) -> None:
    answer = await api.admin.get(api.path("secrets"), resourceVersion=FUTURE, **given)
    assert (answer.status, answer.body["reason"], answer.headers["retry-after"]) == (504, "Timeout", "1")
    assert answer.body["message"].startswith(f"Timeout: Too large resource version: {FUTURE}, current: ")
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert answer.body["details"] == {"causes": [cause], "retryAfterSeconds": 1}


async def test_get_at_a_future_version_times_out(api: BareApi) -> None:
    path, _ = await secrets(api)
    answer = await api.admin.get(f"{path}/a", resourceVersion=FUTURE)
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")
    assert (await api.admin.get(f"{path}/a", resourceVersion="0")).status == 200


@pytest.mark.parametrize("version", ["abc", "-1"])
async def test_invalid_version_is_refused(api: BareApi, version: str) -> None:
    path, _ = await secrets(api)
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


def forbidden(field: str, text: str) -> dict[str, str]:
    return {"reason": "FieldValueForbidden", "message": f"Forbidden: {text}", "field": field}


MATCH = "resourceVersionMatch"
WITHOUT = forbidden(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided")
UNKNOWN = {
    "reason": "FieldValueNotSupported",
    "message": 'Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""',
    "field": MATCH,
}


@pytest.mark.parametrize(
    ("given", "causes"),
    [
        pytest.param({MATCH: "Exact"}, [WITHOUT], id="match without a version"),
        pytest.param({MATCH: "Foo", "resourceVersion": "5"}, [UNKNOWN], id="an unknown match"),
        pytest.param({MATCH: "Foo"}, [WITHOUT, UNKNOWN], id="both"),
        pytest.param(
            {MATCH: "Exact", "resourceVersion": "0"},
            [forbidden(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"')],
            id="exact match of version 0",
        ),
        pytest.param(
            {MATCH: "NotOlderThan", "resourceVersion": "5", "continue": "abc"},
            [forbidden(MATCH, f"{MATCH} is forbidden when continue is provided")],
            id="match with a token",
        ),
        pytest.param(
            {"sendInitialEvents": "true"},
            [forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")],
            id="initial events in a list",
        ),
    ],
)
async def test_conflicting_list_options_are_refused(
    api: BareApi, given: dict[str, str], causes: list[dict[str, Any]]
) -> None:
    answer = await api.admin.get(api.path("secrets"), **given)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"] == {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes}
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    assert answer.body["message"] == f'ListOptions.meta.k8s.io "" is invalid: {joined}'
