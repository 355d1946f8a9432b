"""Reads the upgrade repository through the API server, for a manager outside the cluster.

cli/run.py uses it in place of repository_client.py's HTTP client.

The API server's proxy of Services sends each request to a ready Pod. Unlike a port-forward, no connection is kept, and
the kubeconfig's credentials and proxies apply (docs/decisions/0029-repository-through-the-api-server.md).
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import TIMED_OUT, Terminal, Transient
from upgrade_manager.kube.transport import Request, Response
from upgrade_manager.resources.repository import PORT

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Transport


class ServiceProxyClient:
    """A `RepositoryClient` for URLs of `repo_url`."""

    def __init__(self, transport: Transport, *, server: str) -> None:
        self._transport = transport
        self._server = server

    @property
    def repo_url(self) -> str:
        """The value for `--repo-url`."""
        return f"{self._server}/api/v1/namespaces/{HARVESTER_SYSTEM}/services/http:{{service}}:{PORT}/proxy"

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Response:  # noqa: ASYNC109  # part of the request
        """Implement `RepositoryClient`; a refusal of the API server itself is Transient."""
        request = Request(method="GET", path=url.removeprefix(self._server), timeout=timeout)
        body = bytearray()
        try:
            async with asyncio.timeout(timeout), self._transport.open(request) as stream:
                async for chunk in stream.chunks():
                    body += chunk
                    if len(body) > limit:
                        raise Terminal(f"{url} exceeds {limit} bytes")
                response = Response(status=stream.status, headers=stream.headers, body=bytes(body))
        except TimeoutError as error:
            raise Transient(f"{url}: timed out after {timeout:g} s", reason=TIMED_OUT) from error
        if reason := _refusal(response):
            raise Transient(f"{url}: {reason}", status=response.status)
        return response


def _refusal(response: Response) -> str:
    """Return the API server's message, such as that no Pod is ready; empty for a response of the repository."""
    if response.status < HTTPStatus.BAD_REQUEST:
        return ""
    try:
        status = json.loads(response.body)
    except ValueError:
        return ""
    return objects.excerpt(status, "message") or "refused" if objects.text(status, "kind") == "Status" else ""
