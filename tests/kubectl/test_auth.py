"""kubectl as other users."""

from __future__ import annotations

import pytest

from tests.support.cluster.kubectl import Cluster
from tests.support.server.accounts import grant

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


GROUP = "management.harvesterhci.io"
READ = {"apiGroups": [GROUP], "resources": ["upgradeplans"], "verbs": ["get", "list", "watch"]}


async def test_user_has_the_rights_that_are_granted(cluster: Cluster) -> None:
    await cluster.plan()
    message = await cluster.fail("--context=bob", "get", "up", "demo")
    assert message == (
        f'Error from server (Forbidden): upgradeplans.{GROUP} "demo" is forbidden: User "bob" '
        f'cannot get resource "upgradeplans" in API group "{GROUP}" at the cluster scope\n'
    )
    assert 'User "bob" cannot list resource "upgradeplans"' in await cluster.fail("get", "up", "--as=bob")
    # kubectl caches discovery, which would hide the refusal.
    await cluster.succeed("get", "up")
    message = await cluster.fail("--context=bob", "get", "up", "--as=admin")
    assert 'users "admin" is forbidden: User "bob" cannot impersonate resource "users" in API group ""' in message
    await grant(cluster.wire, "bob", READ)
    assert (await cluster.succeed("--context=bob", "get", "up", "-o", "name")).lines
    message = await cluster.fail("--context=bob", "delete", "up", "demo")
    assert 'User "bob" cannot delete resource "upgradeplans"' in message


async def test_unknown_token_is_unauthorized(cluster: Cluster) -> None:
    message = await cluster.fail("--context=stranger", "get", "up")
    assert "You must be logged in to the server" in message
