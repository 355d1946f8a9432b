"""SubjectAccessReviews and TokenReviews."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server.accounts import grant
from tests.support.server.bareapi import BareApi
from tests.support.server.kinds import until

pytestmark = pytest.mark.servers

ACCESS = "/apis/authorization.k8s.io/v1"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"


async def given(api: BareApi) -> str:
    """Create a user that may get the Secret named one."""
    user = f"user-{api.word}"
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]}
    await grant(api.admin, user, rule, namespace=api.namespace)
    await until(api, api.path("secrets", "one"), lambda answer: answer.status == 404, wire=api.acting_as(user))
    return user


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param(
            {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "$ns", "name": "one"}},
            {"allowed": True, "reason": 'RBAC: allowed by RoleBinding "given/$ns" of Role "given" to User "$user"'},
            id="granted",
        ),
        pytest.param(
            {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "$ns", "name": "two"}},
            {"allowed": False},
            id="another name",
        ),
    ],
)
async def test_access_review_of_a_user(api: BareApi, spec: dict[str, Any], status: dict[str, Any]) -> None:
    user = await given(api)

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        return value.replace("$ns", api.namespace).replace("$user", user) if isinstance(value, str) else value

    review = {"spec": filled(spec) | {"user": user}}
    answer = await api.admin.post(f"{ACCESS}/subjectaccessreviews", review)
    assert (answer.status, answer.body["status"]) == (201, filled(status))


@pytest.mark.parametrize(("name", "allowed"), [("one", True), ("two", False)])
async def test_access_review_of_the_sender(api: BareApi, name: str, *, allowed: bool) -> None:
    wire = api.acting_as(await given(api))
    attributes = {"verb": "get", "resource": "secrets", "namespace": api.namespace, "name": name}
    answer = await wire.post(f"{ACCESS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}})
    assert (answer.status, answer.body["status"]["allowed"]) == (201, allowed)


async def test_known_token_is_authenticated(api: BareApi) -> None:
    answer = await api.admin.post(TOKENS, {"spec": {"token": "bob"}})
    assert answer.status == 201
    status = answer.body["status"]
    assert status["authenticated"] is True
    assert status["user"] == {"username": "bob", "uid": "bob", "groups": ["developers", "system:authenticated"]}
    assert len(status["audiences"]) == 1


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"token": "unknown"}, id="unknown token"),
        pytest.param({"token": "bob", "audiences": ["others"]}, id="other audience"),
    ],
)
async def test_invalid_token_is_not_authenticated(api: BareApi, spec: dict[str, Any]) -> None:
    answer = await api.admin.post(TOKENS, {"spec": spec})
    assert (answer.status, answer.body["status"]) == (201, {"error": "invalid bearer token", "user": {}})
