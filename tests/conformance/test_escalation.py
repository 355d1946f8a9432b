"""Nobody can give away rights that they do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kinds import until

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi
    from tests.support.wire import Answer

pytestmark = pytest.mark.servers

RBAC = "rbac.authorization.k8s.io"
#: What the editor of roles has besides: may be given on.
OWN = [
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get", "list"]},
    {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get"]},
]
EDITING = {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ["get", "list", "create", "patch"]}


class Editor:
    """Somebody who may write roles and bindings in the test's namespace."""

    def __init__(self, api: BareApi) -> None:
        self.name = f"user-{api.word}"
        self._api = api
        self._wire = api.acting_as(self.name)
        self._roles = api.path("roles", group=RBAC)
        self._bindings = api.path("rolebindings", group=RBAC)
        self._subject = {"apiGroup": RBAC, "kind": "User", "name": self.name}

    async def installed(self, *more: dict[str, Any]) -> Editor:
        """With the rights of an editor and more."""
        body = {"metadata": {"name": "editor"}, "rules": [EDITING, *OWN, *more]}
        assert (await self._api.admin.post(self._roles, body)).status == 201
        answer = await self._api.admin.post(self._bindings, self._binding("editor", "Role", "editor"))
        assert answer.status == 201
        await until(self._api, self._roles, lambda answer: answer.status == 200, wire=self._wire)
        return self

    async def role(self, *rules: dict[str, Any]) -> Answer:
        """Create a role."""
        return await self._wire.post(self._roles, {"metadata": {"name": "new"}, "rules": [*rules]})

    async def patch(self, body: dict[str, Any]) -> Answer:
        """Change that role."""
        return await self._wire.patch(f"{self._roles}/new", body)

    async def bind(self, kind: str, name: str) -> Answer:
        """Bind oneself to a role."""
        return await self._wire.post(self._bindings, self._binding("new", kind, name))

    def _binding(self, name: str, kind: str, role: str) -> dict[str, Any]:
        reference = {"apiGroup": RBAC, "kind": kind, "name": role}
        return {"metadata": {"name": name}, "roleRef": reference, "subjects": [self._subject]}

    def refusal(self, plural: str, *missing: str) -> str:
        """What is said about rights that are missing."""
        lines = "\n".join(missing)
        who = f'user "{self.name}" (groups=["system:authenticated"])'
        why = f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"
        return f'{plural}.{RBAC} "new" is forbidden: {why}'


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]}, id="less"
        ),
        pytest.param({"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get"]}, id="as much"),
        pytest.param({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]}, id="a part of all"),
    ],
)
async def test_own_rights_can_be_given(api: BareApi, rule: dict[str, Any]) -> None:
    editor = await Editor(api).installed()
    assert (await editor.role(rule)).status == 201
    assert (await editor.bind("Role", "new")).status == 201


@pytest.mark.parametrize(
    ("rule", "missing"),
    [
        pytest.param(
            {
                "apiGroups": [""],
                "resources": ["secrets"],
                "resourceNames": ["one"],
                "verbs": ["get", "delete", "list", "watch"],
            },
            ['{APIGroups:[""], Resources:["secrets"], ResourceNames:["one"], Verbs:["delete" "watch"]}'],
            id="more verbs",
        ),
        pytest.param(
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
            ['{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'],
            id="all names",
        ),
        pytest.param(
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
            ['{APIGroups:["apps"], Resources:["deployments"], Verbs:["*"]}'],
            id="all verbs",
        ),
        pytest.param(
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]},
            ['{APIGroups:["*"], Resources:["*"], Verbs:["get"]}'],
            id="all groups",
        ),
        pytest.param(
            {"apiGroups": ["batch", ""], "resources": ["jobs", "pods"], "verbs": ["list", "get"]},
            [
                f'{{APIGroups:["{group}"], Resources:["{plural}"], Verbs:["list" "get"]}}'
                for group in ("", "batch")
                for plural in ("jobs", "pods")
            ],
            id="several",
        ),
    ],
)
async def test_other_rights_cannot(api: BareApi, rule: dict[str, Any], missing: list[str]) -> None:
    editor = await Editor(api).installed()
    answer = await editor.role(rule)
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"] == editor.refusal("roles", *missing)
    assert answer.body["details"] == {"name": "new", "group": RBAC, "kind": "roles"}


async def test_a_role_cannot_grow_but_can_be_labelled(api: BareApi) -> None:
    editor = await Editor(api).installed()
    await editor.role(OWN[1])
    grown = await editor.patch({"rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}]})
    assert grown.body["message"] == editor.refusal("roles", '{APIGroups:["batch"], Resources:["jobs"], Verbs:["get"]}')
    assert (await editor.patch({"metadata": {"labels": {"a": "b"}}})).status == 200


async def test_nobody_can_bind_to_a_role_with_other_rights(api: BareApi) -> None:
    editor = await Editor(api).installed()
    path = f"/apis/{RBAC}/v1/clusterroles"
    rules = [
        {"nonResourceURLs": ["/x"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["x"], "verbs": ["get"]},
    ]
    await api.admin.post(path, {"metadata": {"name": api.word}, "rules": rules})
    await until(api, f"{path}/{api.word}", lambda answer: answer.status == 200)
    answer = await editor.bind("ClusterRole", api.word)
    assert answer.body["message"] == editor.refusal("rolebindings", '{NonResourceURLs:["/x"], Verbs:["get"]}')
    await api.admin.delete(f"{path}/{api.word}")


async def test_nobody_but_an_administrator_can_bind_to_a_role_that_is_not_there(api: BareApi) -> None:
    editor = await Editor(api).installed()
    answer = await editor.bind("Role", "nosuch")
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["message"] == f'rolebindings.{RBAC} "nosuch" not found'
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "nosuch"}
    body = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": []}
    assert (await api.admin.post(api.path("rolebindings", group=RBAC), body)).status == 201


async def test_verbs_of_their_own_lift_the_rule(api: BareApi) -> None:
    editor = await Editor(api).installed(
        {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["escalate", "bind"]},
    )
    assert (await editor.role({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]})).status == 201
    assert (await editor.bind("Role", "new")).status == 201
