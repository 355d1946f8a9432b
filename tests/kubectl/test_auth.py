"""Who may do what: kubectl as another user, and kubectl auth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.accounts import grant

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


async def test_as_somebody_else(cluster: Cluster) -> None:
    outcome = await cluster.kubectl("get", "up", "--as=bob")
    assert outcome.code == 1
    assert 'User "bob" cannot list resource "upgradeplans"' in outcome.err


async def test_only_the_administrator_can_be_somebody_else(cluster: Cluster) -> None:
    await cluster.succeed("get", "up")  # kubectl keeps what it discovers, and would show nothing of a refusal there
    outcome = await cluster.kubectl("--context=bob", "get", "up", "--as=admin")
    assert outcome.code == 1
    assert 'users "admin" is forbidden: User "bob" cannot impersonate resource "users" in API group ""' in outcome.err
