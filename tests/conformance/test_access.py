"""Requests that RBAC does not allow, and what is said about each kind of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.accounts import RBAC, grant
from tests.support.kinds import until

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

#: Stand for the test's namespace and user.
NS, USER = "$ns", "$user"


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


@pytest.mark.parametrize(
    ("verb", "where", "subject", "what"),
    [
        ("GET", f"/api/v1/namespaces/{NS}/secrets", "secrets", f'list resource "secrets" in API group "" {IN_NS}'),
        ("GET", f"/api/v1/namespaces/{NS}/secrets/x", 'secrets "x"', f'get resource "secrets" in API group "" {IN_NS}'),
        ("GET", "/api/v1/secrets", "secrets", f'list resource "secrets" in API group "" {CLUSTER}'),
        ("POST", f"/api/v1/namespaces/{NS}/secrets", "secrets", f'create resource "secrets" in API group "" {IN_NS}'),
        (
            "PUT",
            f"/api/v1/namespaces/{NS}/secrets/x",
            'secrets "x"',
            f'update resource "secrets" in API group "" {IN_NS}',
        ),
        (
            "PATCH",
            f"/api/v1/namespaces/{NS}/secrets/x",
            'secrets "x"',
            f'patch resource "secrets" in API group "" {IN_NS}',
        ),
        (
            "DELETE",
            f"/api/v1/namespaces/{NS}/secrets/x",
            'secrets "x"',
            f'delete resource "secrets" in API group "" {IN_NS}',
        ),
        (
            "DELETE",
            f"/api/v1/namespaces/{NS}/secrets",
            "secrets",
            f'deletecollection resource "secrets" in API group "" {IN_NS}',
        ),
        ("GET", "/api/v1/nodes/n", 'nodes "n"', f'get resource "nodes" in API group "" {CLUSTER}'),
        ("POST", "/api/v1/nodes", "nodes", f'create resource "nodes" in API group "" {CLUSTER}'),
        (
            "GET",
            f"/apis/apps/v1/namespaces/{NS}/deployments/x",
            'deployments.apps "x"',
            f'get resource "deployments" in API group "apps" {IN_NS}',
        ),
        (
            "PUT",
            f"/api/v1/namespaces/{NS}/pods/x/status",
            'pods "x"',
            f'update resource "pods/status" in API group "" {IN_NS}',
        ),
        (
            "GET",
            f"/apis/apps/v1/namespaces/{NS}/deployments/x/scale",
            'deployments.apps "x"',
            f'get resource "deployments/scale" in API group "apps" {IN_NS}',
        ),
        ("GET", f"/api/v1/namespaces/{NS}/pods/x/log", 'pods "x"', f'get resource "pods/log" in API group "" {IN_NS}'),
        (
            "POST",
            f"/api/v1/namespaces/{NS}/pods/x/eviction",
            'pods "x"',
            f'create resource "pods/eviction" in API group "" {IN_NS}',
        ),
        (
            "GET",
            "/api/v1/nodes/n/proxy/stats/summary",
            'nodes "n"',
            f'get resource "nodes/proxy" in API group "" {CLUSTER}',
        ),
        (
            "GET",
            f"/apis/nosuch.io/v1/namespaces/{NS}/foos",
            "foos.nosuch.io",
            f'list resource "foos" in API group "nosuch.io" {IN_NS}',
        ),
        ("GET", "/api/v1/foos", "foos", f'list resource "foos" in API group "" {CLUSTER}'),
        ("GET", f"/api/v1/namespaces/{NS}", f'namespaces "{NS}"', f'get resource "namespaces" in API group "" {IN_NS}'),
        ("GET", "/api/v1/namespaces", "namespaces", f'list resource "namespaces" in API group "" {CLUSTER}'),
        (
            "PUT",
            f"/api/v1/namespaces/{NS}/finalize",
            f'namespaces "{NS}"',
            f'update resource "namespaces/finalize" in API group "" {IN_NS}',
        ),
    ],
)
async def test_a_user_without_rights_cannot(api: BareApi, verb: str, where: str, subject: str, what: str) -> None:
    body = await refused(api, "eve", verb, where)
    assert body["message"] == path(f'{subject} is forbidden: User "eve" cannot {what}', api)
    name = subject.partition('"')[2].rstrip('"')
    assert body["details"].get("name", "") == path(name, api)
    kind, _, group = subject.partition(" ")[0].partition(".")
    assert (body["details"]["kind"], body["details"].get("group", "")) == (kind, group)


async def test_a_watch_is_a_verb_of_its_own(api: BareApi) -> None:
    body = await refused(api, "eve", "GET", "/api/v1/secrets", watch="true")
    assert body["message"] == (
        'secrets is forbidden: User "eve" cannot watch resource "secrets" in API group "" at the cluster scope'
    )


@pytest.mark.parametrize(
    ("verb", "where", "word"),
    [
        ("GET", "/metrics", "get"),
        ("GET", "/foo/bar", "get"),
        ("GET", "/", "get"),
        ("GET", "/readyz/ping", "get"),
        ("POST", "/version", "post"),
    ],
)
async def test_a_user_without_rights_cannot_reach_a_path(api: BareApi, verb: str, where: str, word: str) -> None:
    body = await refused(api, "eve", verb, where)
    assert body["message"] == f'forbidden: User "eve" cannot {word} path "{where}"'
    assert body["details"] == {}


@pytest.mark.parametrize(
    "where", ["/version", "/healthz", "/livez", "/readyz", "/api", "/apis", "/apis/apps/v1", "/openapi/v3"]
)
async def test_everybody_may_read(api: BareApi, where: str) -> None:
    assert (await api.acting_as("eve").get(where)).status == 200


async def granted(api: BareApi, *rules: dict[str, Any]) -> str:
    """A user who may do in the test's namespace what the rules say, besides reading its roles."""
    user = f"user-{api.word}"
    seeing = {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["list"]}
    await grant(api.admin, user, *rules, seeing, namespace=api.namespace)
    await until(api, api.path("roles", group=RBAC), lambda answer: answer.status == 200, wire=api.acting_as(user))
    return user


@pytest.mark.parametrize(
    ("where", "query", "status"),
    [
        pytest.param("secrets/one", {}, 404, id="the named one, which is not there"),
        pytest.param("secrets/two", {}, 403, id="another"),
        pytest.param("secrets", {}, 403, id="all"),
        pytest.param("secrets", {"fieldSelector": "metadata.name=one"}, 200, id="all of that name"),
        pytest.param("secrets", {"fieldSelector": "metadata.name==one"}, 200, id="all of that name, otherwise written"),
        pytest.param("secrets", {"fieldSelector": f"metadata.name=one,metadata.namespace={NS}"}, 200, id="and more"),
        pytest.param("secrets", {"fieldSelector": "metadata.name=two"}, 403, id="all of another name"),
        pytest.param("secrets", {"fieldSelector": "metadata.name!=one"}, 403, id="all but that name"),
    ],
)
async def test_rights_for_one_name(api: BareApi, where: str, query: dict[str, str], status: int) -> None:
    user = await granted(
        api, {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get", "list"]}
    )
    given = {key: path(value, api) for key, value in query.items()}
    assert (await api.acting_as(user).get(api.path(where), **given)).status == status


@pytest.mark.parametrize(
    ("rule", "where", "status"),
    [
        pytest.param({"resources": ["pods"]}, "pods/x", 404, id="a kind"),
        pytest.param({"resources": ["pods"]}, "pods/x/status", 403, id="a kind is not its subresources"),
        pytest.param({"resources": ["pods/status"]}, "pods/x", 403, id="a subresource is not its kind"),
        pytest.param({"resources": ["pods/status"]}, "pods/x/status", 404, id="a subresource"),
        pytest.param({"resources": ["*/status"]}, "pods/x/status", 404, id="a subresource of all kinds"),
        pytest.param({"resources": ["pods/*"]}, "pods/x/status", 403, id="a star is no name of a subresource"),
        pytest.param({"resources": ["*"]}, "pods/x/status", 404, id="all resources"),
        pytest.param({"resources": ["pods"], "verbs": ["*"]}, "pods/x", 404, id="all verbs"),
        pytest.param({"resources": ["pods"], "apiGroups": ["*"]}, "pods/x", 404, id="all groups"),
        pytest.param({"resources": ["pods"], "apiGroups": ["apps"]}, "pods/x", 403, id="another group"),
        pytest.param({"resources": ["pods"], "verbs": ["list"]}, "pods/x", 403, id="another verb"),
    ],
)
async def test_what_a_rule_covers(api: BareApi, rule: dict[str, Any], where: str, status: int) -> None:
    user = await granted(api, {"apiGroups": [""], "verbs": ["get"]} | rule)
    assert (await api.acting_as(user).get(api.path(where))).status == status


async def test_bindings_to_roles_that_are_not_there_are_named(api: BareApi) -> None:
    user = f"user-{api.word}"
    subject = {"kind": "User", "name": user, "apiGroup": RBAC}
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "gone"}
    bindings = api.path("rolebindings", group=RBAC)
    await api.admin.post(bindings, {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]})
    where = api.path("secrets")
    answer = await until(api, where, lambda answer: "not found" in answer.body["message"], wire=api.acting_as(user))
    assert answer.body["message"] == (
        f'secrets is forbidden: User "{user}" cannot list resource "secrets" in API group "" in the namespace '
        f'"{api.namespace}": RBAC: role.rbac.authorization.k8s.io "gone" not found'
    )


async def test_somebody_whose_token_is_not_known(api: BareApi) -> None:
    answer = await api.holding("nobody").get("/version")
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
async def test_without_a_token_one_may_see_that_there_is_a_server(api: BareApi, where: str) -> None:
    assert (await api.holding("").get(where)).status == 200


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("/api", 'forbidden: User "system:anonymous" cannot get path "/api"'),
        ("/api/v1/secrets", f'secrets is forbidden: User "system:anonymous" cannot {LISTING}'),
    ],
)
async def test_without_a_token_one_is_anonymous(api: BareApi, where: str, text: str) -> None:
    answer = await api.holding("").get(where)
    assert (answer.status, answer.body["message"]) == (403, text)
