"""Questions to the server about tokens and rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.identity import User
from tests.support.rbac import grant
from tests.support.wire import Wire

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

AUTHN = "/apis/authentication.k8s.io/v1"
AUTHZ = "/apis/authorization.k8s.io/v1"
PODS = {"verb": "list", "resource": "pods", "namespace": "default"}
BOB = User(name="bob", uid="7", groups=("developers",), extra={"a": ("b",)})


@pytest.fixture
async def bob(server: ApiServer, wire: Wire) -> Wire:
    """Bob, who may list Pods, as a client."""
    server.authenticator.register("bob-token", User(name="bob", groups=("system:authenticated",)))
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    await grant(wire, "bob", rule, name="r")
    return Wire(server, headers={"authorization": "Bearer bob-token"})


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        pytest.param({"resourceAttributes": PODS}, True, id="allowed"),
        pytest.param({"resourceAttributes": PODS | {"verb": "delete"}}, False, id="not allowed"),
        pytest.param({"nonResourceAttributes": {"verb": "get", "path": "/apis"}}, True, id="a path"),
    ],
)
async def test_may_i(bob: Wire, *, spec: dict[str, Any], allowed: bool) -> None:
    answer = await bob.post(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": spec})
    assert (answer.status, answer.body["kind"]) == (201, "SelfSubjectAccessReview")
    assert answer.body["status"]["allowed"] is allowed
    assert answer.body["spec"] == spec


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        pytest.param({"user": "bob"}, True, id="a user who may"),
        pytest.param({"user": "eve"}, False, id="a user who may not"),
        pytest.param({"user": "eve", "groups": ["system:masters"], "extra": {"a": ["b"]}}, True, id="by a group"),
    ],
)
async def test_may_somebody_else(bob: Wire, wire: Wire, *, subject: dict[str, Any], allowed: bool) -> None:
    del bob
    answer = await wire.post(f"{AUTHZ}/subjectaccessreviews", {"spec": subject | {"resourceAttributes": PODS}})
    assert answer.body["status"]["allowed"] is allowed


async def test_may_somebody_else_in_a_namespace(bob: Wire, wire: Wire) -> None:
    del bob
    path = f"{AUTHZ}/namespaces/default/localsubjectaccessreviews"
    body = {"spec": {"user": "bob", "resourceAttributes": PODS}}
    assert (await wire.post(path, body)).body["status"]["allowed"] is True
    elsewhere = {"spec": {"user": "bob", "resourceAttributes": PODS | {"namespace": "a"}}}
    refused = await wire.post(path, elsewhere)
    assert (refused.status, "must match metadata.namespace" in refused.body["message"]) == (422, True)


@pytest.mark.parametrize(
    ("path", "spec", "text"),
    [
        pytest.param(
            "selfsubjectaccessreviews",
            {},
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            id="about nothing",
        ),
        pytest.param(
            "selfsubjectaccessreviews",
            {"resourceAttributes": PODS, "nonResourceAttributes": {"path": "/"}},
            "cannot be specified in combination with resourceAttributes",
            id="about two things",
        ),
        pytest.param(
            "subjectaccessreviews",
            {"resourceAttributes": PODS},
            "at least one of user or group must be specified",
            id="about nobody",
        ),
        pytest.param("selfsubjectrulesreviews", {}, "no namespace on request", id="about no namespace"),
    ],
)
async def test_a_question_about_nothing(wire: Wire, path: str, spec: dict[str, Any], text: str) -> None:
    answer = await wire.post(f"{AUTHZ}/{path}", {"spec": spec})
    assert answer.status in {400, 422}
    assert text in answer.body["message"]


async def test_all_my_rules(bob: Wire) -> None:
    answer = await bob.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    status = answer.body["status"]
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]} in status["resourceRules"]
    assert any("/apis" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    assert status["incomplete"] is False


async def test_rules_with_a_role_that_is_missing(bob: Wire, wire: Wire) -> None:
    await wire.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles/r")
    answer = await bob.post(f"{AUTHZ}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert answer.body["status"]["incomplete"] is True
    assert '"r" not found' in answer.body["status"]["evaluationError"]


async def test_whose_token_it_is(server: ApiServer, wire: Wire) -> None:
    server.authenticator.register("t", BOB)
    answer = await wire.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "t"}})
    assert answer.body["status"] == {
        "authenticated": True,
        "user": {"username": "bob", "uid": "7", "groups": ["developers"], "extra": {"a": ["b"]}},
        "audiences": ["https://kubernetes.default.svc.cluster.local"],
    }


async def test_nobodys_token(wire: Wire) -> None:
    answer = await wire.post(f"{AUTHN}/tokenreviews", {"spec": {"token": "nosuch"}})
    assert answer.body["status"] == {"user": {}, "error": "invalid bearer token"}


async def test_no_token(wire: Wire) -> None:
    answer = await wire.post(f"{AUTHN}/tokenreviews", {"spec": {}})
    assert (answer.status, answer.body["message"]) == (400, "token is required for TokenReview in authentication")


async def test_who_am_i(bob: Wire) -> None:
    answer = await bob.post(f"{AUTHN}/selfsubjectreviews", {})
    assert answer.body["status"] == {"userInfo": {"username": "bob", "groups": ["system:authenticated"]}}
