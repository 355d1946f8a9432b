"""The inventory of a real API server."""

from __future__ import annotations

from random import Random
from typing import Any

from hack.control_plane.backend import kinds
from tests.support.kube_server import ScriptedTransport, success
from upgrade_manager.kube.client import Client


def version(name: str, *resources: dict[str, Any]) -> dict[str, Any]:
    return {"version": name, "resources": [*resources]}


def resource(kind: str, *verbs: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    return {"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": [*verbs]}


async def test_kinds_that_can_be_emptied_have_their_preferred_version() -> None:
    every = ("delete", "get", "list")
    core = {"metadata": {}, "versions": [version("v1", resource("Pod", *every), resource("Binding", "create"))]}
    versions = [version("v1", resource("Deployment", *every)), version("v1beta1", resource("Deployment", *every))]
    apps = {"metadata": {"name": "apps"}, "versions": versions}
    transport = ScriptedTransport(others=[success({"items": [core]}), success({"items": [apps]})])
    found = await kinds(Client(transport, user_agent="test", random=Random(1)))
    assert [(each.api_version, each.kind) for each in found] == [("v1", "Pod"), ("apps/v1", "Deployment")]
