"""/healthz, /livez and /readyz: always well, in the forms in which probes and people ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.status import no_such_path
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from upgrade_manager.kube.transport import Request

_ROOTS = ("healthz", "livez", "readyz")
_CHECKS = ("ping", "log", "etcd")
_HEADERS = {"content-type": "text/plain; charset=utf-8"}


def is_health(path: str) -> bool:
    """Whether a path is about the server's health."""
    return path.split("/")[1:2] in [[root] for root in _ROOTS]


def health(request: Request) -> Response:
    """The answer. Raises StatusError 404 for a check that there is not."""
    _, root, *rest = request.path.split("/")
    if rest and (len(rest) > 1 or rest[0] not in _CHECKS):
        raise no_such_path()
    if rest or all(key != "verbose" for key, _ in request.query):
        return Response(status=200, headers=_HEADERS, body=b"ok")
    lines = [*(f"[+]{check} ok" for check in _CHECKS), f"{root} check passed"]
    return Response(status=200, headers=_HEADERS, body="".join(f"{line}\n" for line in lines).encode())
