"""Mutating admission webhooks over real HTTPS; what they share with validating ones is in test_webhooks.py."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.server import hooks
from tests.support.server.bareapi import BareApi
from tests.support.server.hooks import MUTATING, FixedResponse, WebhookServer
from tests.support.server.raw_client import JsonResponse

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]

FAILED = 'Internal error occurred: failed calling webhook "check.example.io": '
INVALID = f"{FAILED}received invalid webhook response: "


@pytest.fixture
async def hook() -> AsyncIterator[WebhookServer]:
    async with hooks.hook() as running:
        yield running


async def create(api: BareApi, **query: str) -> JsonResponse:
    return await api.admin.post(api.path("configmaps"), {"metadata": {"name": "a"}, "data": {"a": "b"}}, **query)


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def added(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


async def test_patch_changes_what_is_stored(api: BareApi, hook: WebhookServer) -> None:
    hook.answers["/patch"] = patch(added("/metadata/annotations", {}), added("/metadata/annotations/a~1b", "ä ~"))
    async with hook.configured(api, "/patch", at=MUTATING):
        created = await create(api)
        stored = await api.admin.get(api.path("configmaps", "a"))
        changed = await api.admin.patch(api.path("configmaps", "a"), {"metadata": {"annotations": {"c": "d"}}})
    assert created.body["metadata"]["annotations"] == stored.body["metadata"]["annotations"] == {"a/b": "ä ~"}
    # The patch has replaced the annotations.
    assert (changed.status, changed.body["metadata"]["annotations"]) == (200, {"a/b": "ä ~"})
    assert [one["operation"] for one in hook.reviews] == ["CREATE", "UPDATE"]
    assert hook.reviews[1]["object"]["metadata"]["annotations"] == {"a/b": "ä ~", "c": "d"}
    assert hook.reviews[1]["oldObject"]["metadata"]["annotations"] == {"a/b": "ä ~"}


async def test_name_is_generated_after_the_review(api: BareApi, hook: WebhookServer) -> None:
    async with hook.configured(api, "/allow", at=MUTATING):
        answer = await api.admin.post(api.path("configmaps"), {"metadata": {"generateName": "g-"}})
    (review,) = hook.reviews
    metadata = review["object"]["metadata"]
    assert review.get("name", "") == metadata.get("name", "") == ""
    assert metadata["generateName"] == "g-"
    assert not metadata.get("uid")
    assert answer.body["metadata"]["name"].startswith("g-")


async def test_validating_webhook_sees_the_patched_object(api: BareApi, hook: WebhookServer) -> None:
    hook.answers["/patch"] = patch(added("/data/c", "d"))
    async with hook.configured(api, "/allow"), hook.configured(api, "/patch", at=MUTATING):
        assert (await create(api)).status == 201
    mutating, validating = hook.reviews
    assert [one["object"]["data"] for one in (mutating, validating)] == [{"a": "b"}, {"a": "b", "c": "d"}]
    assert validating["object"]["metadata"]["uid"]


EMPTY = base64.b64encode(b"[]").decode()
TEST = patch({"op": "test", "path": "/data/a", "value": "x"})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param({"patch": EMPTY}, INVALID, id="no type"),
        pytest.param({"patchType": "JSONPatch"}, INVALID, id="no patch"),
        pytest.param(FixedResponse(status=500, body="boom"), FAILED, id="an error"),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_invalid_response_fails_the_request_or_is_ignored(
    api: BareApi, hook: WebhookServer, answer: Any, message: str, policy: str
) -> None:
    hook.answers["/invalid"] = answer if isinstance(answer, FixedResponse) else {"allowed": True, **answer}
    async with hook.configured(api, "/invalid", at=MUTATING, failurePolicy=policy):
        found = await create(api)
    if policy == "Ignore":
        assert (found.status, found.body["data"]) == (201, {"a": "b"})
    else:
        assert (found.status, found.body["reason"]) == (500, "InternalError")
        assert found.body["message"].startswith(message)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(TEST, id="a test that fails"),
        pytest.param(patch({"op": "remove", "path": "/data/x"}), id="a member that is absent"),
    ],
)
async def test_patch_that_does_not_apply_fails_whatever_the_policy(
    api: BareApi, hook: WebhookServer, answer: dict[str, Any]
) -> None:
    hook.answers["/patch"] = answer
    async with hook.configured(api, "/patch", at=MUTATING, failurePolicy="Ignore"):
        found = await create(api)
    assert (found.status, found.body["reason"]) == (500, "InternalError")
