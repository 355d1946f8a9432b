"""What a simulated cluster stands on: an API server, embedded or real, that others fill and play on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from datetime import datetime
    from types import TracebackType

    from hack.apiserver.handlers import Handlers
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.transport import Transport


class Backend(Protocol):
    """An API server for one cluster; it serves while its context is entered."""

    #: As an administrator, for whoever belongs to the cluster.
    transport: Transport
    #: Each request in the name of whoever sent it, by its Authorization header; what a gateway stands before.
    client_transport: Transport
    #: An administrator's, for the kubeconfig.
    token: str
    #: Paths that the cluster's inhabitants answer behind the API server.
    handlers: Handlers
    #: Whether kube-controller-manager is at work; else its part has to be played.
    has_controllers: bool
    #: So many requests at a time fill it best.
    concurrency: int

    def now(self) -> datetime:
        """The cluster's wall time, aware."""
        ...

    def actor_transport(self) -> Transport:
        """The way that the inhabitants take, with the little time that a wire costs."""
        ...

    def foreign_crds(self) -> list[Object]:
        """The definitions of others, which the cluster is to have."""
        ...

    async def on_crds_established(self) -> None:
        """All kinds of the cluster are defined: whoever has to know them at its start may start."""
        ...

    async def stop_api_server(self) -> None:
        """The API server goes away with the machines that it runs on."""
        ...

    async def start_api_server(self) -> None:
        """It comes back, with all that it stored; returns when it answers."""
        ...

    async def objects(self) -> list[Object]:
        """Every object of every kind, in no order."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
