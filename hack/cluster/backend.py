"""The backend of a simulated cluster: an API server, embedded or real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from datetime import datetime
    from types import TracebackType

    from hack.actors.freezer import Freezer
    from hack.apiserver.admission import Stage
    from hack.apiserver.handlers import Handlers
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport


class Backend(Protocol):
    """An API server for one cluster; it serves while its context is entered."""

    #: Authenticates as an administrator; for the actors.
    transport: Transport
    #: Authenticates each request by its Authorization header; for the gateway.
    client_transport: Transport
    #: An administrator's token, for the kubeconfig.
    token: str
    #: Paths that actors serve behind the API server.
    handlers: Handlers
    #: True if the controllers of `hack.control_plane` run; otherwise actors simulate them.
    has_controllers: bool
    #: The number of parallel requests that creates the initial objects fastest.
    concurrency: int

    def now(self) -> datetime:
        """Return the cluster's wall time, timezone-aware."""
        ...

    def actor_transport(self) -> Transport:
        """Return the transport of the actors, with network latency."""
        ...

    def admit(self, stage: Stage) -> None:
        """Let a validating stage of admission see all writes; a real API server has only webhooks."""
        ...

    def configure(self, scenario: Scenario, freezer: Freezer) -> None:
        """Take the scenario's settings for controllers that are not actors, and what it freezes."""
        ...

    async def define(self, further: list[Object]) -> None:
        """Install the CustomResourceDefinitions that Harvester's components install, and further ones."""
        ...

    async def stop_api_server(self) -> None:
        """Stop the API server, as its hosts go down."""
        ...

    async def start_api_server(self) -> None:
        """Start the API server with its stored objects and wait until it is ready."""
        ...

    async def objects(self) -> list[Object]:
        """Return every object of every kind, unordered."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
