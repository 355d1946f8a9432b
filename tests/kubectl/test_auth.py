"""kubectl as other users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.accounts import grant

if TYPE_CHECKING:
    from tests.support.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


async def test_user_without_rights_cannot_get(cluster: Cluster) -> None:
    await cluster.plan()
    outcome = await cluster.kubectl("--context=bob", "get", "up", "demo")
    assert outcome.code == 1
    assert outcome.err == (
        'Error from server (Forbidden): upgradeplans.management.harvesterhci.io "demo" is forbidden: User "bob" '
        'cannot get resource "upgradeplans" in API group "management.harvesterhci.io" at the cluster scope\n'
    )


async def test_user_without_rights_cannot_list_in_a_namespace(cluster: Cluster) -> None:
    outcome = await cluster.kubectl("--context=bob", "get", "pods", "-n", "kube-system")
    assert outcome.code == 1
    assert outcome.err == (
        'Error from server (Forbidden): pods is forbidden: User "bob" cannot list resource "pods" in API group "" '
        'in the namespace "kube-system"\n'
    )


async def test_user_with_read_rights_cannot_delete(cluster: Cluster) -> None:
    await cluster.plan()
    group = "management.harvesterhci.io"
    await grant(
        cluster.wire, "bob", {"apiGroups": [group], "resources": ["upgradeplans"], "verbs": ["get", "list", "watch"]}
    )
    assert (await cluster.succeed("--context=bob", "get", "up", "-o", "name")).lines
    outcome = await cluster.kubectl("--context=bob", "delete", "up", "demo")
    assert outcome.code == 1
    assert 'User "bob" cannot delete resource "upgradeplans"' in outcome.err


async def test_unknown_token_is_unauthorized(cluster: Cluster) -> None:
    outcome = await cluster.kubectl("--context=stranger", "get", "up")
    assert outcome.code == 1
    assert "You must be logged in to the server" in outcome.err


async def test_impersonated_user_has_its_own_rights(cluster: Cluster) -> None:
    outcome = await cluster.kubectl("get", "up", "--as=bob")
    assert outcome.code == 1
    assert 'User "bob" cannot list resource "upgradeplans"' in outcome.err


async def test_impersonation_needs_a_rule(cluster: Cluster) -> None:
    await cluster.succeed("get", "up")  # kubectl caches discovery, which would hide the refusal
    outcome = await cluster.kubectl("--context=bob", "get", "up", "--as=admin")
    assert outcome.code == 1
    assert 'users "admin" is forbidden: User "bob" cannot impersonate resource "users" in API group ""' in outcome.err
