"""Discovery in the older format, which kopf reads and the embedded API server does not have."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hack.apiserver.status import JSON_HEADERS
from hack.apiserver.streams import WholeStream
from hack.bench.peers.report import GROUP, KIND, PLURAL, VERSION
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from upgrade_manager.kube.transport import Request, Stream, Transport


def _group(name: str, version: str) -> dict[str, Any]:
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}


_RESOURCE = {"singularName": KIND.lower(), "namespaced": True, "kind": KIND}
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_DOCUMENTS: dict[str, dict[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "namespaces", "singularName": "", "namespaced": False, "kind": "Namespace", "verbs": _VERBS}
        ],
    },
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(GROUP, VERSION), _group("apiextensions.k8s.io", "v1")],
    },
    f"/apis/{GROUP}/{VERSION}": {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{VERSION}",
        "resources": [
            {**_RESOURCE, "name": PLURAL, "verbs": _VERBS},
            {**_RESOURCE, "name": f"{PLURAL}/status", "verbs": ["get", "patch", "update"]},
        ],
    },
}


class Discovery:
    """A `Transport` around an embedded server that responds to the older discovery, of what kopf reads."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        """Respond to discovery, and pass on the rest."""
        return _response(request) or await self._inner.send(request)

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Respond to discovery, and pass on the rest."""
        response = _response(request)
        return self._inner.open(request) if response is None else _opened(response)


@asynccontextmanager
async def _opened(response: Response) -> AsyncIterator[Stream]:
    yield WholeStream(response)


def _response(request: Request) -> Response | None:
    document = _DOCUMENTS.get(request.path.rstrip("/"))
    if document is None:
        return None
    return Response(status=200, headers=JSON_HEADERS, body=json.dumps(document).encode())
