"""Paths that simulated kubelets and aggregated APIs serve in front of a real API server.

kube-apiserver refuses to proxy to loopback addresses, where these listen. A request is authorized by the API server
itself, through a SelfSubjectAccessReview with the caller's credentials.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from hack.apiserver.authorization import attributes_of, refusal
from hack.apiserver.identity import RESOURCE_ATTRIBUTES, User
from hack.apiserver.streams import WholeStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.apiserver.handlers import Handlers
    from upgrade_manager.kube.transport import Request, Response, Stream, Transport


class AuthorizedHandlers:
    """A `Transport` that serves the handlers' paths itself and passes on the rest."""

    def __init__(self, inner: Transport, *, handlers: Handlers) -> None:
        self._inner = inner
        self._handlers = handlers

    async def send(self, request: Request) -> Response:
        """Serve or pass on a request. Raises Transient."""
        found = self._handlers.find(request)
        if found is None:
            return await self._inner.send(request)
        handler, values = found
        return await self._refusal(request) or await handler(request, values)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Serve or pass on a request whose response is read in pieces. Raises Transient."""
        if self._handlers.find(request) is not None:
            yield WholeStream(await self.send(request))
            return
        async with self._inner.open(request) as stream:
            yield stream

    async def _refusal(self, request: Request) -> Response | None:
        """Return the API server's refusal; None when the caller may send the request."""
        wanted = attributes_of(request)
        spec = {"resourceAttributes": {name: getattr(wanted, name) for name in RESOURCE_ATTRIBUTES}}
        access = await self._review(request, "authorization.k8s.io/v1", "SelfSubjectAccessReview", spec=spec)
        if access.status >= HTTPStatus.BAD_REQUEST:
            return access
        if json.loads(access.body)["status"]["allowed"]:
            return None
        identity = await self._review(request, "authentication.k8s.io/v1", "SelfSubjectReview")
        if identity.status >= HTTPStatus.BAD_REQUEST:
            return identity
        name = json.loads(identity.body)["status"]["userInfo"]["username"]
        return refusal(User(name=name), wanted, "").response()

    async def _review(self, request: Request, api_version: str, kind: str, **more: Any) -> Response:
        body = json.dumps({"apiVersion": api_version, "kind": kind, **more}).encode()
        headers = {**request.headers, "content-type": "application/json", "accept": "application/json"}
        path = f"/apis/{api_version}/{kind.lower()}s"
        return await self._inner.send(replace(request, method="POST", path=path, query=(), headers=headers, body=body))
