"""RBAC: who may do what, and what everybody else is told."""

from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.authorization import authorize, decide
from hack.apiserver.identity import ADMIN, ANONYMOUS, Attributes, User
from hack.apiserver.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from hack.apiserver.status import StatusError
from hack.apiserver.storage import Storage
from hack.virtual_time import EPOCH

GROUP = "management.harvesterhci.io"
BOB = User(name="bob", groups=("developers", "system:authenticated"))
ACCOUNT = User(name="system:serviceaccount:harvester-system:manager", groups=("system:serviceaccounts",))
GET = Attributes(verb="get", group=GROUP, resource="upgradeplans", name="demo")
RULE = {"apiGroups": [GROUP], "resources": ["upgradeplans"], "verbs": ["get"]}


@pytest.fixture
def store() -> Storage:
    return Storage(now=lambda: EPOCH)


def role(store: Storage, *rules: dict[str, Any], name: str = "r", namespace: str = "", **meta: Any) -> None:
    metadata = {"name": name, **meta} | ({"namespace": namespace} if namespace else {})
    kind = ROLES if namespace else CLUSTER_ROLES
    store.write(kind, (namespace, name), {"metadata": metadata, "rules": [*rules]})


def bind(
    store: Storage, subject: dict[str, str], *, kind: str = "ClusterRole", name: str = "r", namespace: str = ""
) -> None:
    metadata = {"name": "b"} | ({"namespace": namespace} if namespace else {})
    binding = {"metadata": metadata, "roleRef": {"kind": kind, "name": name}, "subjects": [subject]}
    store.write(ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS, (namespace, "b"), binding)


def allowed(store: Storage, user: User, attributes: Attributes) -> bool:
    return decide(user, attributes, store).allowed


def test_masters_may_do_everything(store: Storage) -> None:
    assert allowed(store, ADMIN, GET)


def test_others_may_do_nothing_by_themselves(store: Storage) -> None:
    assert not allowed(store, BOB, GET)


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        pytest.param(BOB, {"kind": "User", "name": "bob"}, id="a user"),
        pytest.param(BOB, {"kind": "Group", "name": "developers"}, id="a group"),
        pytest.param(
            ACCOUNT,
            {"kind": "ServiceAccount", "name": "manager", "namespace": "harvester-system"},
            id="a service account",
        ),
    ],
)
def test_a_binding_gives_a_role_to_its_subjects(store: Storage, user: User, subject: dict[str, str]) -> None:
    role(store, RULE)
    bind(store, subject)
    assert allowed(store, user, GET)
    assert not allowed(store, User(name="eve"), GET)


@pytest.mark.parametrize(
    ("rule", "attributes", "yes"),
    [
        pytest.param(RULE, {}, True, id="as granted"),
        pytest.param(RULE, {"verb": "delete"}, False, id="another verb"),
        pytest.param(RULE | {"verbs": ["*"]}, {"verb": "delete"}, True, id="any verb"),
        pytest.param(RULE, {"group": "batch"}, False, id="another group"),
        pytest.param(RULE | {"apiGroups": ["*"]}, {"group": "batch"}, True, id="any group"),
        pytest.param(RULE, {"resource": "nodes"}, False, id="another kind"),
        pytest.param(RULE | {"resources": ["*"]}, {"resource": "nodes"}, True, id="any kind"),
        pytest.param(RULE, {"subresource": "status"}, False, id="a subresource is apart"),
        pytest.param(
            RULE | {"resources": ["upgradeplans/status"]}, {"subresource": "status"}, True, id="a subresource"
        ),
        pytest.param(RULE | {"resources": ["*/status"]}, {"subresource": "status"}, True, id="one of any kind"),
        pytest.param(RULE | {"resources": ["*"]}, {"subresource": "status"}, True, id="a star means subresources too"),
        pytest.param(RULE | {"resources": ["upgradeplans/*"]}, {"subresource": "status"}, False, id="no such pattern"),
        pytest.param(RULE | {"resourceNames": ["demo"]}, {}, True, id="a name"),
        pytest.param(RULE | {"resourceNames": ["demo"]}, {"name": "other"}, False, id="another name"),
        pytest.param(RULE | {"resourceNames": ["demo"]}, {"name": ""}, False, id="no name"),
    ],
)
def test_what_a_rule_covers(store: Storage, *, rule: dict[str, Any], attributes: dict[str, str], yes: bool) -> None:
    role(store, rule)
    bind(store, {"kind": "User", "name": "bob"})
    known = {"verb": "get", "group": GROUP, "resource": "upgradeplans", "name": "demo"}
    assert allowed(store, BOB, Attributes(**known | attributes)) is yes


@pytest.mark.parametrize(
    ("urls", "path", "yes"),
    [
        pytest.param(["/metrics"], "/metrics", True, id="one path"),
        pytest.param(["/metrics"], "/metrics/a", False, id="not below it"),
        pytest.param(["/logs/*"], "/logs/a", True, id="below"),
        pytest.param(["*"], "/anything", True, id="any"),
    ],
)
def test_rules_about_paths(store: Storage, *, urls: list[str], path: str, yes: bool) -> None:
    role(store, {"nonResourceURLs": urls, "verbs": ["get"]})
    bind(store, {"kind": "User", "name": "bob"})
    assert allowed(store, BOB, Attributes(verb="get", path=path)) is yes


def test_a_role_in_a_namespace_counts_there_only(store: Storage) -> None:
    role(store, {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, namespace="a")
    bind(store, {"kind": "User", "name": "bob"}, kind="Role", namespace="a")
    assert allowed(store, BOB, Attributes(verb="list", resource="pods", namespace="a"))
    assert not allowed(store, BOB, Attributes(verb="list", resource="pods", namespace="b"))
    assert not allowed(store, BOB, Attributes(verb="list", resource="pods"))


def test_a_cluster_role_can_be_given_in_one_namespace(store: Storage) -> None:
    bind(store, {"kind": "User", "name": "bob"}, name="view", namespace="a")
    assert allowed(store, BOB, Attributes(verb="list", resource="pods", namespace="a"))
    assert not allowed(store, BOB, Attributes(verb="list", resource="secrets", namespace="a"))


def test_the_usual_roles_need_not_be_stored(store: Storage) -> None:
    bind(store, {"kind": "User", "name": "bob"}, name="cluster-admin")
    assert allowed(store, BOB, Attributes(verb="delete", resource="nodes", name="n"))
    assert allowed(store, BOB, Attributes(verb="get", path="/metrics"))


def test_roles_are_added_to_the_usual_ones_by_their_label(store: Storage) -> None:
    role(store, RULE, labels={"rbac.authorization.k8s.io/aggregate-to-view": "true"})
    bind(store, {"kind": "User", "name": "bob"}, name="view")
    assert allowed(store, BOB, GET)


@pytest.mark.parametrize(
    ("user", "attributes", "yes"),
    [
        pytest.param(BOB, Attributes(verb="get", path="/apis/batch/v1"), True, id="discovery"),
        pytest.param(BOB, Attributes(verb="get", path="/openapi/v3"), True, id="OpenAPI"),
        pytest.param(
            BOB,
            Attributes(verb="create", group="authorization.k8s.io", resource="selfsubjectaccessreviews"),
            True,
            id="asking about oneself",
        ),
        pytest.param(
            BOB,
            Attributes(verb="create", group="authorization.k8s.io", resource="subjectaccessreviews"),
            False,
            id="asking about others",
        ),
        pytest.param(ANONYMOUS, Attributes(verb="get", path="/version"), True, id="the version, for anybody"),
        pytest.param(ANONYMOUS, Attributes(verb="get", path="/apis"), False, id="discovery, for anybody"),
    ],
)
def test_what_everybody_may_do(store: Storage, *, user: User, attributes: Attributes, yes: bool) -> None:
    assert allowed(store, user, attributes) is yes


def test_the_verdict_names_the_binding(store: Storage) -> None:
    role(store, RULE)
    bind(store, {"kind": "Group", "name": "developers"})
    assert decide(BOB, GET, store).reason == (
        'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "developers"'
    )


def test_the_verdict_names_the_binding_in_a_namespace(store: Storage) -> None:
    bind(
        store,
        {"kind": "ServiceAccount", "name": "manager", "namespace": "harvester-system"},
        name="view",
        namespace="a",
    )
    assert decide(ACCOUNT, Attributes(verb="get", resource="pods", namespace="a"), store).reason == (
        'RBAC: allowed by RoleBinding "b/a" of ClusterRole "view" to ServiceAccount "manager/harvester-system"'
    )


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        pytest.param(
            GET,
            f'upgradeplans.{GROUP} "demo" is forbidden: User "bob" cannot get resource "upgradeplans" '
            f'in API group "{GROUP}" at the cluster scope',
            id="an object",
        ),
        pytest.param(
            Attributes(verb="list", resource="pods", namespace="a"),
            'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "a"',
            id="a list in a namespace",
        ),
        pytest.param(
            Attributes(verb="patch", group=GROUP, resource="upgradeplans", subresource="status", name="demo"),
            f'upgradeplans.{GROUP} "demo" is forbidden: User "bob" cannot patch resource "upgradeplans/status" '
            f'in API group "{GROUP}" at the cluster scope',
            id="a subresource",
        ),
        pytest.param(
            Attributes(verb="get", path="/metrics"), 'forbidden: User "bob" cannot get path "/metrics"', id="a path"
        ),
    ],
)
def test_a_refusal_says_who_cannot_do_what(store: Storage, attributes: Attributes, message: str) -> None:
    with pytest.raises(StatusError) as refusal:
        authorize(BOB, attributes, store)
    assert (refusal.value.code, refusal.value.reason, refusal.value.message) == (403, "Forbidden", message)


def test_a_refusal_tells_of_a_role_that_is_missing(store: Storage) -> None:
    bind(store, {"kind": "User", "name": "bob"}, name="nosuch")
    with pytest.raises(StatusError) as refusal:
        authorize(BOB, GET, store)
    assert refusal.value.message.endswith(': RBAC: clusterrole.rbac.authorization.k8s.io "nosuch" not found')


def test_a_refusal_tells_of_all_roles_that_are_missing(store: Storage) -> None:
    bind(store, {"kind": "User", "name": "bob"}, name="nosuch")
    bind(store, {"kind": "User", "name": "bob"}, kind="Role", name="neither", namespace="a")
    verdict = decide(BOB, Attributes(verb="get", resource="pods", namespace="a"), store)
    assert verdict.reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "nosuch" not found, '
        'role.rbac.authorization.k8s.io "neither" not found]'
    )


def test_what_is_allowed_raises_nothing(store: Storage) -> None:
    authorize(ADMIN, GET, store)
