"""Lists and gets at a version: any, exact, not older, in the future, and what is no version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kinds import define, drop

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

FUTURE = "999999999"


async def secrets(api: BareApi) -> tuple[str, str]:
    """The path, and the version at which there were a and b; by now there is c too."""
    path = api.path("secrets")
    for name in "ab":
        await api.admin.post(path, {"metadata": {"name": name}})
    version = (await api.admin.get(path)).version
    await api.admin.post(path, {"metadata": {"name": "c"}})
    return path, version


@pytest.mark.parametrize(
    ("given", "names", "same"),
    [
        pytest.param({}, "abc", False, id="newer than the version"),
        pytest.param({"resourceVersionMatch": "NotOlderThan"}, "abc", False, id="not older"),
        pytest.param({"resourceVersionMatch": "NotOlderThan", "limit": "2"}, "ab", False, id="a page, not older"),
        pytest.param({"resourceVersionMatch": "Exact"}, "ab", True, id="exactly"),
        pytest.param({"resourceVersionMatch": "Exact", "limit": "1"}, "a", True, id="a page of exactly that"),
        pytest.param({"limit": "5"}, "ab", True, id="a limit means exactly, too"),
    ],
)
async def test_a_list_at_a_version(api: BareApi, given: dict[str, str], names: str, same: bool) -> None:  # noqa: FBT001
    path, version = await secrets(api)
    answer = await api.admin.get(path, resourceVersion=version, **given)
    assert answer.names == list(names)
    assert (answer.version == version) is same


@pytest.mark.parametrize("given", [{}, {"resourceVersionMatch": "NotOlderThan"}])
async def test_version_0_is_any_that_the_cache_has(api: BareApi, given: dict[str, str]) -> None:
    path, _ = await secrets(api)
    await api.admin.get(path)  # the cache is up to date by now
    assert (await api.admin.get(path, resourceVersion="0", **given)).names == list("abc")


async def test_a_version_from_before_the_history_is_gone(api: BareApi) -> None:
    before = (await api.admin.get(api.path("secrets"))).version
    path = await define(api)
    api.storage.compact()
    answer = await api.admin.get(path, resourceVersion=before, resourceVersionMatch="Exact")
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (410, "Expired", 410)
    assert answer.body["message"] == "The resourceVersion for the provided list is too old."
    await drop(api)


@pytest.mark.parametrize("given", [{}, {"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "NotOlderThan"}])
async def test_a_list_at_a_version_in_the_future(api: BareApi, given: dict[str, str]) -> None:
    answer = await api.admin.get(api.path("secrets"), resourceVersion=FUTURE, **given)
    assert (answer.status, answer.body["reason"], answer.headers["retry-after"]) == (504, "Timeout", "1")
    assert answer.body["message"].startswith(f"Timeout: Too large resource version: {FUTURE}, current: ")
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    assert answer.body["details"] == {"causes": [cause], "retryAfterSeconds": 1}


async def test_an_object_at_a_version_in_the_future(api: BareApi) -> None:
    path, _ = await secrets(api)
    answer = await api.admin.get(f"{path}/a", resourceVersion=FUTURE)
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")
    assert (await api.admin.get(f"{path}/a", resourceVersion="0")).status == 200


@pytest.mark.parametrize("version", ["abc", "-1"])
async def test_a_version_that_is_none(api: BareApi, version: str) -> None:
    path, _ = await secrets(api)
    fault = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
    listed = await api.admin.get(path, resourceVersion=version)
    assert (listed.status, listed.body["reason"]) == (400, "BadRequest")
    assert listed.body["message"] == f"invalid resource version: {fault}"
    for answer in (
        await api.admin.get(f"{path}/a", resourceVersion=version),
        await api.admin.get(path, resourceVersion=version, watch="true"),
    ):
        assert (answer.status, answer.body["message"]) == (500, fault)
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
        pytest.param({MATCH: "Exact"}, [WITHOUT], id="a match without a version"),
        pytest.param({MATCH: "Foo", "resourceVersion": "5"}, [UNKNOWN], id="an unknown match"),
        pytest.param({MATCH: "Foo"}, [WITHOUT, UNKNOWN], id="both"),
        pytest.param(
            {MATCH: "Exact", "resourceVersion": "0"},
            [forbidden(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"')],
            id="exactly any",
        ),
        pytest.param(
            {MATCH: "NotOlderThan", "resourceVersion": "5", "continue": "abc"},
            [forbidden(MATCH, f"{MATCH} is forbidden when continue is provided")],
            id="a match with a token",
        ),
        pytest.param(
            {"sendInitialEvents": "true"},
            [forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")],
            id="initial events of a list",
        ),
    ],
)
async def test_parameters_that_do_not_go_together(
    api: BareApi, given: dict[str, str], causes: list[dict[str, Any]]
) -> None:
    answer = await api.admin.get(api.path("secrets"), **given)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"] == {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes}
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    assert answer.body["message"] == f'ListOptions.meta.k8s.io "" is invalid: {told}'
