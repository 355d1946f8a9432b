"""Validating admission webhooks over real HTTPS."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from hack.control_plane.certificates import Authority
from tests.support.server import hooks
from tests.support.server.bareapi import BareApi
from tests.support.server.hooks import FixedResponse, WebhookServer, review, rule
from tests.support.server.raw_client import JsonResponse

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]

DENIED = 'admission webhook "check.example.io" denied the request'
FAILED = 'failed calling webhook "check.example.io": '
CALL = f"{FAILED}failed to call webhook: "
INVALID = f"{FAILED}received invalid webhook response: "


@pytest.fixture
async def hook() -> AsyncIterator[WebhookServer]:
    async with hooks.hook() as running:
        yield running


async def create(api: BareApi, name: str = "a", **query: str) -> JsonResponse:
    return await api.admin.post(api.path("configmaps"), {"metadata": {"name": name, "labels": {"x": "y"}}}, **query)


async def test_webhook_receives_an_admission_review(api: BareApi, hook: WebhookServer) -> None:
    path = api.path("configmaps", "a")
    async with hook.configured(api, "/allow"):
        assert (await create(api)).status == 201
        assert (await api.admin.put(path, {"metadata": {"name": "a"}, "data": {"a": "b"}})).status == 200
        assert (await api.admin.delete(path)).status == 200
    assert [one["operation"] for one in hook.reviews] == ["CREATE", "UPDATE", "DELETE"]
    assert [(one["object"] is None, one["oldObject"] is None) for one in hook.reviews] == [
        (False, True),
        (False, False),
        (True, False),
    ]
    first = hook.reviews[0]
    kind, resource = (
        {"group": "", "version": "v1", "kind": "ConfigMap"},
        {"group": "", "version": "v1", "resource": "configmaps"},
    )
    assert (first["kind"], first["requestKind"]) == (kind, kind)
    assert (first["resource"], first["requestResource"]) == (resource, resource)
    assert (first["name"], first["namespace"], first["dryRun"]) == ("a", api.namespace, False)
    assert first["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert (first["object"]["kind"], first["object"]["metadata"]["name"]) == ("ConfigMap", "a")
    assert "system:masters" in first["userInfo"]["groups"]


async def test_warning_reaches_the_client(api: BareApi, hook: WebhookServer) -> None:
    hook.answers["/warn"] = {"allowed": True, "warnings": ['mind "this"']}
    async with hook.configured(api, "/warn"):
        answer = await create(api)
    assert (answer.status, answer.headers["warning"]) == (201, '299 - "mind \\"this\\""')


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        pytest.param({"message": "no"}, 400, None, f"{DENIED}: no", id="with a message"),
        pytest.param(
            {"code": 422, "reason": "Invalid", "message": "bad"}, 422, "Invalid", f"{DENIED}: bad", id="with a code"
        ),
        pytest.param(None, 400, None, f"{DENIED} without explanation", id="without a status"),
    ],
)
async def test_webhook_denies_a_request(
    api: BareApi, hook: WebhookServer, status: dict[str, Any] | None, code: int, reason: str | None, message: str
) -> None:
    hook.answers["/deny"] = {"allowed": False} | ({"status": status} if status else {})
    async with hook.configured(api, "/deny", failurePolicy="Ignore"):
        answer = await create(api)
    assert (answer.status, answer.body["code"]) == (code, code)
    assert (answer.body.get("reason"), answer.body["message"]) == (reason, message)
    assert (await api.admin.get(api.path("configmaps", "a"))).status == 404


NOT_A = "object.metadata.name != 'a'"
FAILING = "object.data.missing == 'x'"


@pytest.mark.parametrize(
    ("policy", "expressions", "reviews", "status"),
    [
        pytest.param("Fail", ["request.operation == 'CREATE'", "object.metadata.name == 'a'"], 1, 201, id="true"),
        pytest.param("Fail", ["true", NOT_A], 0, 201, id="false"),
        pytest.param("Fail", ["true", FAILING], 0, 403, id="an error"),
        pytest.param("Ignore", ["true", FAILING], 0, 201, id="an ignored error"),
        pytest.param("Fail", [FAILING, NOT_A], 0, 201, id="an error and false"),
    ],
)
async def test_match_conditions_select_requests(
    api: BareApi, hook: WebhookServer, policy: str, expressions: list[str], reviews: int, status: int
) -> None:
    conditions = [{"name": f"c{index}", "expression": one} for index, one in enumerate(expressions)]
    async with hook.configured(api, "/allow", failurePolicy=policy, matchConditions=conditions):
        answer = await create(api)
    assert (answer.status, len(hook.reviews)) == (status, reviews)
    assert answer.body.get("reason") == ("Forbidden" if status == 403 else None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(
            FixedResponse(status=500, body="boom"),
            f'{CALL}an error on the server ("boom") has prevented the request from succeeding',
            id="an error",
        ),
        pytest.param(FixedResponse(status=404, body=""), CALL, id="not found"),
        pytest.param(review(), INVALID, id="no response"),
        pytest.param(review(response={"uid": "other", "allowed": True}), INVALID, id="another uid"),
    ],
)
async def test_invalid_review_fails_the_request(api: BareApi, hook: WebhookServer, answer: Any, message: str) -> None:
    hook.answers["/invalid"] = answer
    async with hook.configured(api, "/invalid", failurePolicy="Fail"):
        refused = await create(api)
    assert (refused.status, refused.body["reason"]) == (500, "InternalError")
    assert refused.body["message"].startswith(f"Internal error occurred: {message}")
    (cause,) = refused.body["details"]["causes"]
    assert f"Internal error occurred: {cause['message']}" == refused.body["message"]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_slow_webhook_times_out(api: BareApi, hook: WebhookServer, policy: str) -> None:
    async with hook.configured(api, "/slow", failurePolicy=policy, timeoutSeconds=1):
        answer = await create(api)
    if policy == "Ignore":
        assert answer.status == 201
    else:
        message = f'Internal error occurred: {CALL}Post "{hook.url}/slow?timeout=1s": context deadline exceeded'
        assert (answer.status, answer.body["message"]) == (500, message)


async def test_untrusted_certificate_fails_the_request(api: BareApi, hook: WebhookServer) -> None:
    bundle = base64.b64encode(Authority(now=datetime.now(UTC)).certificate).decode()
    client = {"url": f"{hook.url}/allow", "caBundle": bundle}
    async with hook.configured(api, "/", clientConfig=client, timeoutSeconds=5):
        answer = await create(api)
    assert answer.status == 500
    assert answer.body["message"].startswith(
        f'Internal error occurred: {CALL}Post "{hook.url}/allow?timeout=5s": tls: failed to verify certificate: x509: '
        "certificate signed by unknown authority"
    )


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        pytest.param(rule("pods"), ["CREATE ", "UPDATE "], id="a kind"),
        pytest.param(rule("pods/status"), ["UPDATE status"], id="a subresource"),
        pytest.param(rule("pods/*"), ["CREATE ", "UPDATE status", "UPDATE "], id="a kind with its subresources"),
        pytest.param(rule("*/status"), ["UPDATE status"], id="a subresource of all kinds"),
    ],
)
async def test_rules_select_requests(api: BareApi, hook: WebhookServer, given: dict[str, Any], seen: list[str]) -> None:
    await api.admin.post(api.path("serviceaccounts"), {"metadata": {"name": "runner"}})
    spec = {"serviceAccountName": "runner", "containers": [{"name": "c", "image": "i"}]}
    path = api.path("pods")
    async with hook.configured(api, "/allow", rules=[given]):
        hook.reviews.clear()
        assert (await api.admin.post(path, {"metadata": {"name": "p"}, "spec": spec})).status == 201
        await api.admin.patch(f"{path}/p/status", {"status": {"phase": "Running"}})
        await api.admin.patch(f"{path}/p", {"metadata": {"labels": {"a": "b"}}})
        review = [f"{one['operation']} {one.get('subResource', '')}" for one in hook.reviews if one["name"] == "p"]
    await api.admin.delete(f"{path}/p", {"gracePeriodSeconds": 0})
    assert review == seen


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        pytest.param({}, ["CREATE", "UPDATE", "UPDATE", "DELETE"], id="without a selector"),
        pytest.param({"objectSelector": {"matchLabels": {"x": "y"}}}, ["CREATE", "UPDATE"], id="labels, old or new"),
        pytest.param({"namespaceSelector": {"matchLabels": {"no": "no"}}}, [], id="another namespace"),
    ],
)
async def test_selectors_select_objects(
    api: BareApi, hook: WebhookServer, given: dict[str, Any], seen: list[str]
) -> None:
    path = api.path("configmaps", "a")
    async with hook.configured(api, "/allow", **given):
        assert (await create(api)).status == 201
        await api.admin.patch(path, {"metadata": {"labels": None}})
        await api.admin.patch(path, {"data": {"k": "v"}})
        await api.admin.delete(path)
    assert [one["operation"] for one in hook.reviews if one["name"] == "a"] == seen
