"""Paths before a real API server that others answer: kubelets, aggregated APIs.

kube-apiserver does not go to loopback addresses, where the simulated ones live. So they answer before it, but only
whom it would have let through: it is asked, in the caller's name.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hack.apiserver.authorization import refusal
from hack.apiserver.identity import User
from hack.apiserver.request_info import attributes_of
from hack.apiserver.streams import WholeStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.apiserver.handlers import Handlers
    from upgrade_manager.kube.transport import Request, Response, Stream, Transport

_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REFUSED = 400


class Reviewed:
    """A `Transport` that answers some paths by its handlers and passes the rest on."""

    def __init__(self, inner: Transport, *, handlers: Handlers) -> None:
        self._inner = inner
        self._handlers = handlers

    async def send(self, request: Request) -> Response:
        """Answer, or pass on. Raises Transient."""
        found = self._handlers.find(request)
        if found is None:
            return await self._inner.send(request)
        handler, values = found
        return await self._refused(request) or await handler(request, values)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """The same, piece by piece. Raises Transient."""
        if self._handlers.find(request) is not None:
            yield WholeStream(await self.send(request))
            return
        async with self._inner.open(request) as stream:
            yield stream

    async def _refused(self, request: Request) -> Response | None:
        """What the server says to whoever may not ask that."""
        asked = attributes_of(request)
        attributes = {"verb": asked.verb, "group": asked.group, "version": asked.version, "resource": asked.resource}
        attributes |= {"subresource": asked.subresource, "namespace": asked.namespace, "name": asked.name}
        review = await self._ask(request, _ACCESS, {"resourceAttributes": attributes})
        if review.status >= _REFUSED:
            return review
        if _status(review)["allowed"]:
            return None
        told = await self._ask(request, _SELF, {})
        name = _status(told)["userInfo"]["username"] if told.status < _REFUSED else ""
        return refusal(User(name=name), asked, "").response()

    async def _ask(self, request: Request, path: str, spec: dict[str, Any]) -> Response:
        kind = "SelfSubjectAccessReview" if path == _ACCESS else "SelfSubjectReview"
        group = path.split("/")[2]
        body = {"apiVersion": f"{group}/v1", "kind": kind} | ({"spec": spec} if spec else {})
        headers = dict(request.headers) | {"content-type": "application/json", "accept": "application/json"}
        return await self._inner.send(
            replace(request, method="POST", path=path, query=(), headers=headers, body=json.dumps(body).encode())
        )


def _status(answer: Response) -> Any:
    return json.loads(answer.body)["status"]
