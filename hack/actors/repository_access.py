"""Access to the upgrade repository: by its Service's name in process, and over HTTP from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, urlsplit

from aiohttp import web

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import repo_service_name
from upgrade_manager.kube.errors import Terminal, Transient

if TYPE_CHECKING:
    from types import TracebackType

    from hack.actors.repository import Repository
    from upgrade_manager.kube.transport import Response

_SHUTDOWN = 1.0


class InClusterRepositoryClient:
    """A `RepositoryClient` for managers in the test's process: http://SERVICE.harvester-system."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109, ARG002  # the protocol's
        """Fetch the URL. Raises Transient for an unreachable server, Terminal for a body longer than `limit` bytes."""
        parts = urlsplit(url)
        service, _, rest = (parts.hostname or "").partition(".")
        if parts.scheme != "http" or rest.split(".")[0] != HARVESTER_SYSTEM or parts.port not in {None, 80}:
            raise Transient(f"get {url}: no such host")
        if not self._repository.is_up(service):
            raise Transient(f"get {url}: connection refused")
        response = self._repository.answer(unquote(parts.path))
        if len(response.body) > limit:
            raise Terminal(f"get {url}: the response exceeds {limit} bytes")
        return response


class RepositoryServer:
    """The repository over HTTP: /PLAN/harvester-iso/… is the plan's repository, /iso/FILE the ISO.

    Requests for the host of a Service get that plan's repository, without /PLAN. A repository that does not run closes
    the connection, since others share the port.
    """

    def __init__(self) -> None:
        self._repository: Repository | None = None
        app = web.Application()
        app.router.add_get("/iso/{name}", self._iso)
        app.router.add_get("/{plan}/{path:.*}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN)

    @property
    def url(self) -> str:
        """Return http://HOST:PORT once the server listens."""
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    def serve(self, repository: Repository) -> None:
        """Serve this repository from now on; before, every path is not found."""
        self._repository = repository

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _iso(self, _: web.Request) -> web.Response:
        """Serve placeholder bytes: the URL of the ISO resolves, its content is never read."""
        return web.Response(body=b"harvester" * 64, content_type="application/octet-stream")

    async def _file(self, request: web.Request) -> web.Response:
        service, path = repo_service_name(request.match_info["plan"]), "/" + request.match_info["path"].lstrip("/")
        if f".{HARVESTER_SYSTEM}" in request.host:
            service, path = request.host.partition(".")[0], request.path
        if self._repository is None or not self._repository.is_up(service):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        answer = self._repository.answer(path)
        return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers))
