"""The inventory of a real API server."""

from __future__ import annotations

from random import Random

from hack.control_plane.backend import kinds
from tests.support.kube_server import ScriptedTransport, failure, success
from upgrade_manager.kube.client import Client


async def test_kinds_skip_a_group_that_was_just_deleted() -> None:
    groups = [{"name": name, "preferredVersion": {"version": "v1"}} for name in ("deleted.example.com", "apps")]
    resource = {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["delete", "get", "list"]}
    responses = [
        success({"groups": groups}),
        success({"resources": []}),
        failure(404),
        success({"resources": [resource]}),
    ]
    transport = ScriptedTransport(others=responses)
    found = await kinds(Client(transport, user_agent="test", random=Random(1)))
    assert [each.kind for each in found] == ["Deployment"]
