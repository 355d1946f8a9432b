"""Acting as somebody else, and who may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kinds import until
from tests.support.rbac import RBAC, grant
from tests.support.wire import Wire

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi
    from tests.support.wire import Answer

pytestmark = pytest.mark.servers

CANNOT = 'User "bob" cannot impersonate'
IN_NAMESPACE = 'in the namespace "n"'
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def who(wire: Wire, **headers: str) -> Answer:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    return await Wire(wire.transport, headers=dict(wire.headers) | given).post(WHO_AM_I, {})


@pytest.mark.parametrize(
    ("headers", "info"),
    [
        pytest.param({}, {"username": "eve", "groups": ["system:authenticated"]}, id="a user"),
        pytest.param(
            {"impersonate_group": "a"}, {"username": "eve", "groups": ["a", "system:authenticated"]}, id="with a group"
        ),
        pytest.param(
            {"impersonate_uid": "7", "impersonate_extra_scopes": "s"},
            {"username": "eve", "uid": "7", "groups": ["system:authenticated"], "extra": {"scopes": ["s"]}},
            id="with a uid and more",
        ),
        pytest.param(
            {"impersonate_user": "system:serviceaccount:n:a"},
            {
                "username": "system:serviceaccount:n:a",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"],
            },
            id="a service account",
        ),
    ],
)
async def test_an_administrator_may_be_anybody(api: BareApi, headers: dict[str, str], info: dict[str, Any]) -> None:
    answer = await who(api.admin, **({"impersonate_user": "eve"} | headers))
    assert answer.status == 201
    assert answer.body["status"]["userInfo"] == info


async def test_nobody_can_be_a_group_alone(api: BareApi) -> None:
    answer = await who(api.admin, impersonate_group="a")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"].endswith("without impersonating a user")


@pytest.mark.parametrize(
    ("user", "text"),
    [
        pytest.param(
            "eve",
            f'users "eve" is forbidden: {CANNOT} resource "users" in API group "" at the cluster scope',
            id="a user",
        ),
        pytest.param(
            "system:serviceaccount:n:a",
            f'serviceaccounts "a" is forbidden: {CANNOT} resource "serviceaccounts" in API group "" {IN_NAMESPACE}',
            id="a service account",
        ),
    ],
)
async def test_a_user_may_not_be_another(api: BareApi, user: str, text: str) -> None:
    answer = await who(api.holding("bob"), impersonate_user=user)
    assert (answer.status, answer.body["reason"], answer.body["message"]) == (403, "Forbidden", text)


async def test_a_user_may_be_whom_the_rules_name(api: BareApi) -> None:
    name = api.word
    rules = [
        {"apiGroups": [""], "resources": ["users"], "resourceNames": [f"z-{name}"], "verbs": ["impersonate"]},
        {"apiGroups": [""], "resources": ["groups"], "resourceNames": ["zs"], "verbs": ["impersonate"]},
        {
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["userextras/scopes"],
            "resourceNames": ["s"],
            "verbs": ["impersonate"],
        },
    ]
    await grant(api.admin, "bob", *rules, name=name)
    bob = api.holding("bob")
    as_z = Wire(bob.transport, headers=dict(bob.headers) | {"impersonate-user": f"z-{name}"})
    await until(api, "/version", lambda answer: answer.status == 200, wire=as_z)
    whole = await who(as_z, impersonate_group="zs", impersonate_extra_scopes="s")
    assert whole.body["status"]["userInfo"] == {
        "username": f"z-{name}",
        "groups": ["zs", "system:authenticated"],
        "extra": {"scopes": ["s"]},
    }
    group = await who(as_z, impersonate_group="others")
    assert group.body["message"] == (
        'groups "others" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" at the cluster '
        "scope"
    )
    extra = await who(as_z, impersonate_extra_scopes="t")
    assert extra.body["message"] == (
        'userextras.authentication.k8s.io "t" is forbidden: User "bob" cannot impersonate resource "userextras/scopes" '
        'in API group "authentication.k8s.io" at the cluster scope'
    )
    for plural in ("clusterrolebindings", "clusterroles"):
        await api.admin.delete(f"/apis/{RBAC}/v1/{plural}/{name}")
