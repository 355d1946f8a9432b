"""kubectl as other users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.server.accounts import grant

if TYPE_CHECKING:
    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


async def test_user_without_rights_cannot_get(cluster: Cluster) -> None:
    await cluster.plan()
    message = await cluster.fail("--context=bob", "get", "up", "demo")
    assert message == (
        'Error from server (Forbidden): upgradeplans.management.harvesterhci.io "demo" is forbidden: User "bob" '
        'cannot get resource "upgradeplans" in API group "management.harvesterhci.io" at the cluster scope\n'
    )


async def test_user_with_read_rights_cannot_delete(cluster: Cluster) -> None:
    await cluster.plan()
    group = "management.harvesterhci.io"
    await grant(
        cluster.wire, "bob", {"apiGroups": [group], "resources": ["upgradeplans"], "verbs": ["get", "list", "watch"]}
    )
    assert (await cluster.succeed("--context=bob", "get", "up", "-o", "name")).lines
    message = await cluster.fail("--context=bob", "delete", "up", "demo")
    assert 'User "bob" cannot delete resource "upgradeplans"' in message


async def test_unknown_token_is_unauthorized(cluster: Cluster) -> None:
    message = await cluster.fail("--context=stranger", "get", "up")
    assert "You must be logged in to the server" in message


async def test_impersonated_user_has_its_own_rights(cluster: Cluster) -> None:
    message = await cluster.fail("get", "up", "--as=bob")
    assert 'User "bob" cannot list resource "upgradeplans"' in message


async def test_impersonation_needs_a_rule(cluster: Cluster) -> None:
    await cluster.succeed("get", "up")  # kubectl caches discovery, which would hide the refusal
    message = await cluster.fail("--context=bob", "get", "up", "--as=admin")
    assert 'users "admin" is forbidden: User "bob" cannot impersonate resource "users" in API group ""' in message
