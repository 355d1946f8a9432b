"""The API server's proxy of Services, for the upgrade repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.answers import refused
from upgrade_manager.api.keys import HARVESTER_SYSTEM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.actors.repository import Repository
    from hack.apiserver.handlers import Handlers
    from upgrade_manager.kube.transport import Request, Response

#: The Service as SCHEME:NAME:PORT.
PATH = f"/api/v1/namespaces/{HARVESTER_SYSTEM}/services/{{service}}/proxy/{{path:rest}}"


def proxy_services(handlers: Handlers, repository: Repository) -> None:
    """Serve the repository's Services behind the API server, as kube-apiserver does: only with a ready endpoint."""

    async def get(_: Request, values: Mapping[str, str]) -> Response:
        service = values["service"].split(":")[1]
        if not repository.is_up(service):
            return refused(503, f'no endpoints available for service "{values["service"]}"')
        return repository.answer("/" + values["path"])

    handlers.register(PATH, get)
