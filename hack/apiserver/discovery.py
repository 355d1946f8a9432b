"""Discovery documents: /api, /apis, /apis/GROUP, /apis/GROUP/VERSION."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.status import no_such_path

if TYPE_CHECKING:
    from hack.apiserver.resources import ResourceTable
    from upgrade_manager.kube.transport import Request, Response


def respond(request: Request, table: ResourceTable) -> Response:
    """Answer a path of at most /apis/GROUP/VERSION. Raises StatusError 404."""
    _ = (request, table)
    raise no_such_path()
