"""An API server that serves Machines in another version."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from hack.faults.forwarding import Forwarding
from upgrade_manager.kube.transport import Request, Response, Stream

OLD, NEW = "/apis/cluster.x-k8s.io/v1beta1", "/apis/cluster.x-k8s.io/v1beta2"
RESOURCES = {"kind": "APIResourceList", "resources": [{"name": "machines"}]}


class NewMachines(Forwarding):
    """A transport to a server that serves v1beta2 of Cluster API instead of v1beta1."""

    async def send(self, request: Request) -> Response:
        """Forward it, or respond with 404 or the served resources."""
        if request.path.startswith(OLD):
            return Response(status=404, body=b"404 page not found")
        if request.path == NEW:
            return Response(status=200, body=json.dumps(RESOURCES).encode())
        return await self._inner.send(_old(request))

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Forward it, to a path that does not exist for the old version."""
        missing = request.path.startswith(OLD)
        return self._inner.open(replace(request, path="/apis/none") if missing else _old(request))


def _old(request: Request) -> Request:
    return replace(request, path=request.path.replace(NEW, OLD))
