"""Impersonation with RBAC."""

from __future__ import annotations

from hack.cluster.impersonation import ActingAs
from tests.support.server.accounts import grant
from tests.support.server.apiserver import make_server
from tests.support.server.raw_client import RawClient

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_rbac_applies_to_the_impersonated_user() -> None:
    server = make_server()
    admin, jane = RawClient(server), RawClient(ActingAs(server, user="jane"))
    refused = await jane.get(MAPS)
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    await grant(admin, "jane", rule)
    assert (await jane.get(MAPS)).status == 200
    assert (await jane.post(MAPS, {"metadata": {"name": "a"}})).status == 403
    async with jane.watch(MAPS) as events:
        await admin.post(MAPS, {"metadata": {"name": "a"}})
        assert await events.take(1) == [("ADDED", "a")]
