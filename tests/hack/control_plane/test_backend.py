"""The inventory of a real API server."""

from __future__ import annotations

from random import Random
from typing import Any

from hack.control_plane.backend import kinds, may_have_objects
from tests.support.server.kube_server import ScriptedTransport, success
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import ADDONS, NODES, SETTINGS


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


def test_custom_kinds_without_an_object_are_left_out() -> None:
    definitions = [
        f"/registry/apiextensions.k8s.io/customresourcedefinitions/{kind.name}" for kind in (ADDONS, SETTINGS)
    ]
    keys = [*definitions, "/registry/harvesterhci.io/addons/kube-system/descheduler", "/registry/minions/node-0"]
    assert may_have_objects([NODES, ADDONS, SETTINGS], keys) == [NODES, ADDONS]
