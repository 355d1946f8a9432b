"""Access to simulated kubelets: by their address in process, and over TLS for managers in separate processes."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import REFUSED, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, SUBJECT_ACCESS_REVIEWS
from upgrade_manager.kube.transport import Response
from upgrade_manager.runtime.metrics_auth import TOKEN_REVIEWS

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Sequence

    from hack.actors.kubelet_stats import KubeletStats
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: The subresource of nodes that authorizes a path, since Kubernetes 1.33.
SUBRESOURCES = {"/stats/summary": "stats", "/configz": "configz"}
_SHUTDOWN = 1.0


class InClusterKubelets:
    """A `KubeletTransport` for managers in the test's process: https://INTERNAL-IP:PORT, without authorization."""

    def __init__(self, stats: KubeletStats) -> None:
        self._stats = stats
        #: Node and path of each request.
        self.requests: list[tuple[str, str]] = []

    async def fetch(self, url: str, *, limit: int) -> Response:
        """Fetch the URL. Raises Transient for a kubelet that does not run."""
        parts = urlsplit(url)
        node = self._stats.node_at(parts.hostname or "", parts.port or 0)
        if node is None:
            raise Transient("connection failed: No route to host", reason=REFUSED)
        self.requests.append((node, parts.path))
        response = await self._stats.serve(node, parts.path)
        if response.status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise Transient("connection refused", reason=REFUSED)
        assert len(response.body) <= limit  # noqa: S101  # a simulated kubelet has no Pods
        return response


class KubeletServers:
    """The kubelets of all nodes over TLS on one host, each on a free port, which its Node names.

    A request needs the bearer token of a user who may `get` the subresource: each kubelet asks the API server, by a
    TokenReview and a SubjectAccessReview.
    """

    def __init__(self, client: Client, stats: KubeletStats, *, tls: ssl.SSLContext, host: str = "127.0.0.1") -> None:
        self._client = client
        self._stats = stats
        self._tls = tls
        self._host = host

    @asynccontextmanager
    async def running(self, nodes: Sequence[str]) -> AsyncIterator[None]:
        """Serve the kubelets of these nodes, and write their addresses."""
        async with AsyncExitStack() as stack:
            for node in nodes:
                port = await self._serve(stack, node)
                status = {
                    "addresses": [{"type": "InternalIP", "address": self._host}, {"type": "Hostname", "address": node}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
                }
                await self._client.patch(NODES, node, MergePatch({"status": status}), subresource="status")
            yield

    async def _serve(self, stack: AsyncExitStack, node: str) -> int:
        app = web.Application()
        app.router.add_get("/{path:.*}", partial(self._respond, node))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, self._host, 0, ssl_context=self._tls).start()
        return int(runner.addresses[0][1])

    async def _respond(self, node: str, request: web.Request) -> web.Response:
        refusal = await self._refusal(node, request)
        response = refusal or await self._stats.serve(node, request.path)
        if response.status == HTTPStatus.SERVICE_UNAVAILABLE and request.transport is not None:
            # A kubelet that does not run.
            request.transport.abort()
        return web.Response(status=response.status, body=response.body, headers=dict(response.headers))

    async def _refusal(self, node: str, request: web.Request) -> Response | None:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        review = await self._review(TOKEN_REVIEWS, {"token": token})
        if not objects.is_true(review, "authenticated"):
            return Response(status=401, body=b"Unauthorized")
        user = objects.mapping(review, "user")
        subresource = SUBRESOURCES.get(request.path, "proxy")
        attributes = {"verb": "get", "version": "v1", "resource": "nodes", "subresource": subresource, "name": node}
        access = await self._review(
            SUBJECT_ACCESS_REVIEWS,
            {"user": user.get("username"), "groups": user.get("groups") or [], "resourceAttributes": attributes},
        )
        if objects.is_true(access, "allowed"):
            return None
        text = f"Forbidden (user={user.get('username')}, verb=get, resource=nodes, subresource(s)=[{subresource}])\n"
        return Response(status=403, body=text.encode())

    async def _review(self, resource: Resource, spec: Object) -> Object:
        review = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        created = await self._client.create(resource, review)
        return dict(created.get("status") or {})
