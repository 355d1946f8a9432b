"""A reflector finds the version in which the API server serves a resource."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.server.kube_server import FedStream, Reply, ScriptedTransport, failure, listing, node, success
from tests.support.server.reflecting import reflected
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import MACHINES
from upgrade_manager.kube.transport import Request

GROUP, NAMESPACE = "/apis/cluster.x-k8s.io", "/namespaces/fleet-local/machines"
OLD, NEW = "v1beta1", "v1beta2"
SELECTION = Selection(resource=MACHINES, namespace="fleet-local")


class Server:
    """Serves Machines in one version; others exist for other kinds."""

    def __init__(self, version: str, *, others: tuple[str, ...] = ()) -> None:
        self.version = version
        self.others = others

    def __call__(self, request: Request) -> Reply:
        """Respond to lists, watches and discovery."""
        if request.path == f"{GROUP}/{self.version}":
            return success({"kind": "APIResourceList", "resources": [{"name": "machines"}]})
        if request.path in [f"{GROUP}/{version}" for version in self.others]:
            return success({"kind": "APIResourceList", "resources": [{"name": "clusters"}]})
        if request.path != f"{GROUP}/{self.version}{NAMESPACE}":
            return failure(404)
        return FedStream() if "watch" in dict(request.query) else listing(node("m"), version="5")


@pytest.mark.parametrize(
    ("served", "others", "expected"),
    [
        pytest.param(OLD, (), [f"{OLD}{NAMESPACE}"] * 2, id="old"),
        pytest.param(NEW, (), [f"{OLD}{NAMESPACE}", OLD, NEW, *[f"{NEW}{NAMESPACE}"] * 2], id="new"),
        pytest.param(NEW, (OLD,), [f"{OLD}{NAMESPACE}", OLD, NEW, *[f"{NEW}{NAMESPACE}"] * 2], id="new, old group"),
    ],
)
async def test_served_version_is_listed_and_watched(served: str, others: tuple[str, ...], expected: list[str]) -> None:
    transport = ScriptedTransport(Server(served, others=others))
    run = await reflected(transport, selection=SELECTION, seconds=5)
    assert [request.path.removeprefix(f"{GROUP}/") for request in run.transport.requests] == expected
    assert run.store.calls == [("replace", "m")]


async def test_unserved_resource_is_listed_until_it_is_served() -> None:
    server = Server("v1")
    run = await reflected(ScriptedTransport(server), selection=SELECTION, seconds=3)
    assert run.store.calls == []
    paths = [request.path.removeprefix(f"{GROUP}/") for request in run.transport.requests]
    assert paths[:4] == [f"{OLD}{NAMESPACE}", OLD, NEW, f"{OLD}{NAMESPACE}"]


async def test_failed_discovery_is_repeated_with_the_list() -> None:
    server, failures = Server(NEW), [failure(403), failure(403)]

    def respond(request: Request) -> Reply:
        return failures.pop() if request.path == f"{GROUP}/{OLD}" and failures else server(request)

    run = await reflected(ScriptedTransport(respond), selection=SELECTION, seconds=30)
    assert run.store.calls == [("replace", "m")]
    assert failures == []


async def test_resource_with_one_version_needs_no_discovery() -> None:
    selection = replace(SELECTION, resource=replace(MACHINES, versions=()))
    run = await reflected(ScriptedTransport(Server(NEW)), selection=selection, seconds=3)
    assert {request.path for request in run.transport.requests} == {f"{GROUP}/{OLD}{NAMESPACE}"}
