"""The upgrade repository through the API server's proxy of Services."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from aiohttp import web

from hack.actors.answers import refused
from hack.control_plane import control_plane as kube
from hack.control_plane.backend import direct
from hack.control_plane.control_plane import ControlPlane
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import KubeError, Terminal, Transient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES, Resource
from upgrade_manager.kube.transport import Request, Response, Stream
from upgrade_manager.release.errors import Unreachable
from upgrade_manager.release.repository_client import read_file
from upgrade_manager.release.service_proxy import ServiceProxyClient

SERVER = "https://x:6443/k8s/clusters/c"
NAMESPACE, NAME = "harvester-system", "proxied"
ENDPOINTS = Resource(group="", version="v1", plural="endpoints", kind="Endpoints")
PATH = "/api/v1/namespaces/harvester-system/services/http:demo-repo:80/proxy/harvester-iso/a%2Fb"
URL = SERVER + PATH


class Pieces:
    """A response in pieces."""

    def __init__(self, response: Response) -> None:
        self.status, self.headers, self._body = response.status, response.headers, response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        for byte in self._body:
            yield bytes([byte])


class Server:
    """Responds with one response, after a delay."""

    def __init__(self, response: Response, *, delay: float = 0.0) -> None:
        self.requests: list[Request] = []
        self._response = response
        self._delay = delay

    async def send(self, request: Request) -> Response:
        raise NotImplementedError

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        self.requests.append(request)
        await asyncio.sleep(self._delay)
        yield Pieces(self._response)


async def test_service_is_read_by_the_path_of_its_proxy() -> None:
    server = Server(Response(status=200, body=b"os: x"))
    client = ServiceProxyClient(server, server=SERVER)
    url = client.repo_url.replace("{service}", "demo-repo") + "/harvester-iso/a%2Fb"
    assert url == URL
    assert await read_file(client, url, limit=10) == b"os: x"
    assert [(request.method, request.path) for request in server.requests] == [("GET", PATH)]


async def test_missing_file_is_not_a_missing_service() -> None:
    missing = Server(Response(status=404, body=b"<html>404 Not Found</html>"))
    assert await read_file(ServiceProxyClient(missing, server=SERVER), URL, limit=100) is None
    for status, message in ((404, 'services "demo-repo" not found'), (503, "no endpoints available"), (403, "no")):
        refusing = ServiceProxyClient(Server(refused(status, message)), server=SERVER)
        with pytest.raises(Unreachable, match=message):
            await read_file(refusing, URL, limit=1000)


@pytest.mark.parametrize(
    ("server", "error", "words"),
    [
        pytest.param(Server(Response(status=200, body=b"x" * 11)), Terminal, "exceeds 10 bytes", id="too long"),
        pytest.param(Server(Response(status=200), delay=11), Transient, "timed out after 10 s", id="too slow"),
    ],
)
async def test_response_is_limited(server: Server, error: type[KubeError], words: str) -> None:
    with pytest.raises(error, match=words):
        await ServiceProxyClient(server, server=SERVER).fetch(URL, limit=10, timeout=10)


def address() -> str:
    """Return an address of this machine that is not loopback, which EndpointSlices refuse."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


@asynccontextmanager
async def repository() -> AsyncIterator[int]:
    """Serve a file as a Pod would; yield the port."""

    async def respond(request: web.Request) -> web.Response:
        return web.Response(text=request.path) if request.path == "/harvester-iso/file" else web.Response(status=404)

    app = web.Application()
    app.router.add_get("/{path:.*}", respond)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, address(), 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def objects_of(port: int) -> Iterator[tuple[Resource, Object]]:
    """Yield what stands behind a Service, as the controllers make it; kube-apiserver proxies to Pods only."""
    metadata = {"name": NAME, "namespace": NAMESPACE}
    yield NAMESPACES, {"metadata": {"name": NAMESPACE}}
    yield SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": NAMESPACE}}
    containers = [{"name": "repo", "image": "x"}]
    yield PODS, {"metadata": metadata, "spec": {"containers": containers, "automountServiceAccountToken": False}}
    yield SERVICES, {"metadata": metadata, "spec": {"ports": [{"name": "http", "port": 80}]}}
    target = {"kind": "Pod", **metadata}
    addresses = [{"ip": address(), "targetRef": target}]
    yield (
        ENDPOINTS,
        {"metadata": metadata, "subsets": [{"addresses": addresses, "ports": [{"name": "http", "port": port}]}]},
    )


@pytest.mark.rule("pipeline: from outside the cluster the repository is read through the API server")
@pytest.mark.assets
@pytest.mark.real_loop
async def test_real_api_server_proxies_to_a_ready_pod(control_plane: ControlPlane) -> None:
    async with direct(control_plane, token=kube.ADMIN.token) as transport, repository() as port:
        client = Client(transport, user_agent="test", random=Random(0))
        proxy = ServiceProxyClient(transport, server=control_plane.url)
        url = proxy.repo_url.replace("{service}", NAME) + "/harvester-iso/file"
        for resource, manifest in objects_of(port):
            if await client.find(resource, manifest["metadata"]["name"], namespace=NAMESPACE) is None:
                await client.create(resource, manifest)
        status = {"phase": "Running", "podIP": address(), "podIPs": [{"ip": address()}]}
        await client.patch(PODS, NAME, MergePatch({"status": status}), namespace=NAMESPACE, subresource="status")
        assert await read_file(proxy, url, limit=10_000) == b"/harvester-iso/file"
        assert await read_file(proxy, url + "s", limit=10_000) is None
        await client.patch(ENDPOINTS, NAME, MergePatch({"subsets": None}), namespace=NAMESPACE)
        with pytest.raises(Unreachable, match=f'no endpoints available for service \\"{NAME}\\"'):
            await read_file(proxy, url, limit=10_000)
        # With its Endpoints.
        await client.delete(SERVICES, NAME, namespace=NAMESPACE)
        with pytest.raises(Unreachable, match="not found"):
            await read_file(proxy, url, limit=10_000)
        await client.delete(PODS, NAME, namespace=NAMESPACE)
