"""RBAC decisions, and the messages of refused requests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server.accounts import RBAC, grant
from tests.support.server.bareapi import BareApi
from tests.support.server.kinds import until

pytestmark = pytest.mark.servers

#: Stands for the test's namespace.
NS = "$ns"


def path(text: str, api: BareApi) -> str:
    return text.replace(NS, api.namespace)


async def refused(api: BareApi, user: str, verb: str, where: str, **query: str) -> dict[str, Any]:
    body: Any = {} if verb in {"POST", "PUT", "PATCH"} else None
    kind = "merge" if verb == "PATCH" else ""
    answer = await api.acting_as(user).call(verb, path(where, api), body, kind=kind, **query)
    assert (answer.status, answer.body["reason"], answer.body["code"]) == (403, "Forbidden", 403)
    refusal: dict[str, Any] = answer.body
    return refusal


IN_NS = f'in the namespace "{NS}"'
CLUSTER = "at the cluster scope"
LISTING = f'list resource "secrets" in API group "" {CLUSTER}'


SPACE = f"/api/v1/namespaces/{NS}"


@pytest.mark.parametrize(
    ("verb", "where", "denied", "name", "group", "scope"),
    [
        ("GET", f"{SPACE}/secrets", "list secrets", "", "", IN_NS),
        ("GET", f"{SPACE}/secrets/x", "get secrets", "x", "", IN_NS),
        ("DELETE", f"{SPACE}/secrets", "deletecollection secrets", "", "", IN_NS),
        ("GET", f"/apis/apps/v1/namespaces/{NS}/deployments/x", "get deployments", "x", "apps", IN_NS),
        ("POST", f"{SPACE}/pods/x/eviction", "create pods/eviction", "x", "", IN_NS),
        ("GET", "/api/v1/nodes/n/proxy/stats/summary", "get nodes/proxy", "n", "", CLUSTER),
        ("GET", f"/apis/nosuch.io/v1/namespaces/{NS}/foos", "list foos", "", "nosuch.io", IN_NS),
        ("GET", SPACE, "get namespaces", NS, "", IN_NS),
        (
            "PUT",
            f"/apis/subresources.kubevirt.io/v1/namespaces/{NS}/virtualmachines/a/stop",
            "update virtualmachines/stop",
            "a",
            "subresources.kubevirt.io",
            IN_NS,
        ),
    ],
)
async def test_request_is_forbidden_without_a_rule(
    api: BareApi, verb: str, where: str, denied: str, name: str, group: str, scope: str
) -> None:
    body = await refused(api, "eve", verb, where)
    action, resource = denied.split()
    kind = resource.partition("/")[0]
    subject = (f"{kind}.{group}" if group else kind) + (f' "{name}"' if name else "")
    what = f'{action} resource "{resource}" in API group "{group}" {scope}'
    assert body["message"] == path(f'{subject} is forbidden: User "eve" cannot {what}', api)
    details = {"name": path(name, api), "group": group, "kind": kind}
    assert body["details"] == {key: value for key, value in details.items() if value}


@pytest.mark.parametrize(
    ("verb", "where", "word"),
    [
        ("GET", "/metrics", "get"),
        ("GET", "/readyz/ping", "get"),
        ("POST", "/apis/batch/v1", "post"),
    ],
)
async def test_non_resource_path_is_forbidden_without_a_rule(api: BareApi, verb: str, where: str, word: str) -> None:
    body = await refused(api, "eve", verb, where)
    assert body["message"] == f'forbidden: User "eve" cannot {word} path "{where}"'
    assert body["details"] == {}


async def granted(api: BareApi, *rules: dict[str, Any]) -> str:
    """Grant the rules in the test's namespace to a new user, and wait until RBAC has them."""
    user = f"user-{api.word}"
    seeing = {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["list"]}
    await grant(api.admin, user, *rules, seeing, namespace=api.namespace)
    await until(api, api.path("roles", group=RBAC), lambda answer: answer.status == 200, wire=api.acting_as(user))
    return user


@pytest.mark.parametrize(
    ("where", "query", "status"),
    [
        pytest.param("secrets/one", {}, 404, id="get of the name"),
        pytest.param("secrets/two", {}, 403, id="get of another name"),
        pytest.param("secrets", {}, 403, id="list"),
        pytest.param("secrets", {"fieldSelector": "metadata.name=one"}, 200, id="list of the name"),
        pytest.param(
            "secrets", {"fieldSelector": "metadata.name=one", "watch": "1", "timeoutSeconds": "1"}, 200, id="watch"
        ),
        pytest.param(
            "secrets",
            {"fieldSelector": f"metadata.name=one,metadata.namespace={NS}"},
            200,
            id="list of name and namespace",
        ),
        pytest.param("secrets", {"fieldSelector": "metadata.name=two"}, 403, id="list of another name"),
    ],
)
async def test_resource_names_restrict_a_rule(api: BareApi, where: str, query: dict[str, str], status: int) -> None:
    user = await granted(
        api, {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get", "list", "watch"]}
    )
    given = {key: path(value, api) for key, value in query.items()}
    assert (await api.acting_as(user).get(api.path(where), **given)).status == status


@pytest.mark.parametrize(
    ("rule", "where", "status"),
    [
        pytest.param({"resources": ["pods"]}, "pods/x", 404, id="resource"),
        pytest.param({"resources": ["pods"]}, "pods/x/status", 403, id="resource does not cover its subresources"),
        pytest.param({"resources": ["pods/status"]}, "pods/x/status", 404, id="subresource"),
        pytest.param({"resources": ["*/status"]}, "pods/x/status", 404, id="status of all resources"),
        pytest.param({"resources": ["pods/*"]}, "pods/x/status", 403, id="pods/* is not a wildcard"),
        pytest.param({"resources": ["*"]}, "pods/x/status", 404, id="all resources"),
        pytest.param({"resources": ["pods"], "verbs": ["list"]}, "pods/x", 403, id="another verb"),
    ],
)
async def test_rule_covers_matching_requests(api: BareApi, rule: dict[str, Any], where: str, status: int) -> None:
    user = await granted(api, {"apiGroups": [""], "verbs": ["get"]} | rule)
    assert (await api.acting_as(user).get(api.path(where))).status == status


async def test_unknown_token_is_unauthorized(api: BareApi) -> None:
    answer = await api.holding("unknown").get("/version")
    assert answer.status == 401
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize("where", ["/version", "/healthz", "/livez", "/readyz"])
async def test_health_and_version_need_no_token(api: BareApi, where: str) -> None:
    assert (await api.holding("").get(where)).status == 200


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("/api", 'forbidden: User "system:anonymous" cannot get path "/api"'),
        ("/api/v1/secrets", f'secrets is forbidden: User "system:anonymous" cannot {LISTING}'),
    ],
)
async def test_request_without_a_token_is_anonymous(api: BareApi, where: str, text: str) -> None:
    answer = await api.holding("").get(where)
    assert (answer.status, answer.body["message"]) == (403, text)
