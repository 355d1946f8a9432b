"""Acting in somebody's name without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.bearer import Bearer
from hack.apiserver.identity import User
from tests.support.wire import Wire

if TYPE_CHECKING:
    from hack.apiserver.server import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def test_access_rules_apply(server: ApiServer, wire: Wire) -> None:
    server.authenticator.register("t", User(name="jane", groups=("system:authenticated",)))
    jane = Wire(Bearer(server, token="t"))  # noqa: S106  # it opens nothing
    refused = await jane.get(MAPS)
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    await wire.post(f"{RBAC}/clusterroles", {"metadata": {"name": "reader"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }
    await wire.post(f"{RBAC}/clusterrolebindings", binding)
    assert (await jane.get(MAPS)).status == 200
    assert (await jane.post(MAPS, {"metadata": {"name": "a"}})).status == 403
    async with jane.watch(MAPS) as events:
        await wire.post(MAPS, {"metadata": {"name": "a"}})
        assert await events.take(1) == [("ADDED", "a")]
