"""Who may do what: kubectl as another user, and kubectl auth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.rbac import grant

if TYPE_CHECKING:
    from tests.support.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


async def test_a_user_without_rights(cluster: Cluster) -> None:
    await cluster.plan()
    outcome = await cluster.kubectl("--context=bob", "get", "up", "demo")
    assert outcome.code == 1
    assert outcome.err == (
        'Error from server (Forbidden): upgradeplans.management.harvesterhci.io "demo" is forbidden: User "bob" '
        'cannot get resource "upgradeplans" in API group "management.harvesterhci.io" at the cluster scope\n'
    )


async def test_a_user_without_rights_in_a_namespace(cluster: Cluster) -> None:
    outcome = await cluster.kubectl("--context=bob", "get", "pods", "-n", "kube-system")
    assert outcome.code == 1
    assert outcome.err == (
        'Error from server (Forbidden): pods is forbidden: User "bob" cannot list resource "pods" in API group "" '
        'in the namespace "kube-system"\n'
    )


async def test_a_user_with_rights_to_read_may_not_write(cluster: Cluster) -> None:
    await cluster.plan()
    group = "management.harvesterhci.io"
    await grant(
        cluster.wire, "bob", {"apiGroups": [group], "resources": ["upgradeplans"], "verbs": ["get", "list", "watch"]}
    )
    assert (await cluster.succeed("--context=bob", "get", "up", "-o", "name")).lines
    outcome = await cluster.kubectl("--context=bob", "delete", "up", "demo")
    assert outcome.code == 1
    assert 'User "bob" cannot delete resource "upgradeplans"' in outcome.err


async def test_a_stranger(cluster: Cluster) -> None:
    outcome = await cluster.kubectl("--context=stranger", "get", "up")
    assert outcome.code == 1
    assert "You must be logged in to the server" in outcome.err


@pytest.mark.parametrize(
    ("user", "verb", "what", "answer"),
    [
        pytest.param("admin", "delete", "upgradeplans", "yes", id="the administrator"),
        pytest.param("bob", "get", "upgradeplans", "yes", id="what was granted"),
        pytest.param("bob", "delete", "upgradeplans", "no", id="what was not"),
        pytest.param("bob", "update", "upgradeplans/status", "no", id="a subresource is apart"),
    ],
)
async def test_can_i(cluster: Cluster, user: str, verb: str, what: str, answer: str) -> None:
    await grant(
        cluster.wire,
        "bob",
        {"apiGroups": ["management.harvesterhci.io"], "resources": ["upgradeplans"], "verbs": ["get"]},
    )
    resource, _, subresource = what.partition("/")
    options = [f"--subresource={subresource}"] if subresource else []
    outcome = await cluster.kubectl(f"--context={user}", "auth", "can-i", verb, resource, *options)
    assert outcome.out.strip() == answer
    assert outcome.code == (0 if answer == "yes" else 1)


async def test_all_that_i_can_do(cluster: Cluster) -> None:
    await grant(cluster.wire, "bob", {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]})
    rows = (await cluster.succeed("--context=bob", "auth", "can-i", "--list", "--no-headers")).rows
    assert ["jobs.batch", "[]", "[]", "[get]"] in rows
    assert ["selfsubjectaccessreviews.authorization.k8s.io", "[]", "[]", "[create]"] in rows


async def test_who_am_i(cluster: Cluster) -> None:
    rows = (await cluster.succeed("--context=bob", "auth", "whoami")).rows
    assert rows[:2] == [["ATTRIBUTE", "VALUE"], ["Username", "bob"]]
    assert ["Groups", "[developers", "system:authenticated]"] in rows


async def test_as_somebody_else(cluster: Cluster) -> None:
    outcome = await cluster.kubectl("get", "up", "--as=bob")
    assert outcome.code == 1
    assert 'User "bob" cannot list resource "upgradeplans"' in outcome.err


async def test_only_the_administrator_can_be_somebody_else(cluster: Cluster) -> None:
    await cluster.succeed("get", "up")  # kubectl keeps what it discovers, and would show nothing of a refusal there
    outcome = await cluster.kubectl("--context=bob", "get", "up", "--as=admin")
    assert outcome.code == 1
    assert 'users "admin" is forbidden: User "bob" cannot impersonate resource "users" in API group ""' in outcome.err
