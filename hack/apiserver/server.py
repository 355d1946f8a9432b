"""The API server as a Transport."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from email.utils import format_datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from hack.apiserver import authorization, discovery, openapi
from hack.apiserver.admission import Chain
from hack.apiserver.authentication import Authenticator, acting
from hack.apiserver.authorization import attributes_of
from hack.apiserver.binding import Binder
from hack.apiserver.collector import GarbageCollector
from hack.apiserver.crds import Definitions, crd_stage
from hack.apiserver.defaults import defaults_stage
from hack.apiserver.definitions import define
from hack.apiserver.handlers import Handlers
from hack.apiserver.jobs import job_labels_stage, job_stage
from hack.apiserver.listing import Lister
from hack.apiserver.namespace_controller import NamespaceController
from hack.apiserver.namespaces import bootstrap, namespace_stage
from hack.apiserver.presentation import negotiate
from hack.apiserver.reading import Reader
from hack.apiserver.resources import ResourceTable
from hack.apiserver.route import resolve
from hack.apiserver.scaling import SUBRESOURCE, Scaler
from hack.apiserver.schema import stages
from hack.apiserver.status import JSON_HEADERS, StatusError, no_such_path
from hack.apiserver.storage import Storage
from hack.apiserver.streams import WatchStream, WholeStream
from hack.apiserver.webhooks import Webhooks
from hack.apiserver.writes import Writer
from hack.apiserver.writing import Writing
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from datetime import datetime
    from random import Random

    from hack.apiserver.admission import Object
    from hack.apiserver.identity import User
    from hack.apiserver.posting import Poster
    from hack.apiserver.route import Route
    from hack.apiserver.watch import Watch
    from upgrade_manager.kube.transport import Request, Stream

_PROBES = {"/healthz", "/livez", "/readyz"}


class ApiServer:
    """An embedded Kubernetes API server; a `Transport` itself.

    Reproducible: times come from `now`, identifiers and generated names from `random`. `poster` calls admission
    webhooks. Garbage collection and cleanup of namespaces need `run()`.
    """

    def __init__(self, *, now: Callable[[], datetime], random: Random, poster: Poster) -> None:
        self.table = ResourceTable.builtin()
        self.storage = Storage(now=now)
        self.authenticator = Authenticator()
        self.handlers = Handlers()
        self.chain = Chain(
            mutating=[stages.shape, namespace_stage, crd_stage, defaults_stage],
            validating=[job_stage, stages.validate, job_labels_stage],
        )
        self.lister = Lister(self.storage, now=now)
        webhooks = Webhooks(storage=self.storage, poster=poster, random=random)
        writer = Writer(storage=self.storage, chain=self.chain, webhooks=webhooks, now=now, random=random)
        Definitions(self.storage, table=self.table, now=now)
        self._controllers = (
            NamespaceController(self.storage, table=self.table, writer=writer),
            GarbageCollector(self.storage, table=self.table, writer=writer),
        )
        self._reader = Reader(storage=self.storage, lister=self.lister, now=now, random=random)
        self._binder = Binder(table=self.table, writer=writer, now=now)
        self._scaler = Scaler(writer=writer)
        self._now, self._random = now, random
        self._writing = Writing(writer=writer, authenticator=self.authenticator, now=now)
        bootstrap(self.storage, now=now, random=random)

    async def run(self) -> None:
        """Run the garbage collector and the namespace controller until cancelled."""
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.worker.run(), name=type(controller).__name__)

    async def send(self, request: Request) -> Response:
        """Return the response to a request; a watch is collected until it ends. Raises Transient at the time-out."""
        try:
            async with asyncio.timeout(request.timeout):
                response = await self._handle(request)
        except TimeoutError as error:
            raise Transient(f"{request.method} {request.path}: no response within {request.timeout:g} s") from error
        if isinstance(response, Response):
            return response
        with closing(self._stream(response)) as stream:
            body = b"".join([chunk async for chunk in stream.chunks()])
        return Response(status=stream.status, headers=stream.headers, body=body)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Return the response to a request as a stream."""
        response = await self._handle(request)
        if isinstance(response, Response):
            yield WholeStream(response)
            return
        with closing(self._stream(response)) as stream:
            yield stream

    def define(self, definitions: Iterable[Object]) -> None:
        """Create CustomResourceDefinitions, which must not change afterwards. Raises StatusError."""
        define(definitions, self.storage, now=self._now, random=self._random)

    def compact(self) -> None:
        """Drop all history: older watches and continue tokens get 410."""
        self.storage.compact()
        self.lister.expire()

    def close(self) -> None:
        """Close all open watches."""
        for collection in self.storage.collections():
            collection.close()

    async def _handle(self, request: Request) -> Response | Watch:
        try:
            response = await self._dispatch(request)
        except StatusError as error:
            response = error.response()
        if isinstance(response, Response):
            return replace(response, headers=self._dated(response.headers))
        return response

    def _stream(self, watch: Watch) -> WatchStream:
        return WatchStream(watch, headers=self._dated(JSON_HEADERS))

    def _dated(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        return {**headers, "date": _date(self._now().replace(microsecond=0))}

    async def _dispatch(self, request: Request) -> Response | Watch:
        user = acting(self.authenticator.identify(request), request, self.storage)
        if authorization.MASTERS not in user.groups:
            authorization.authorize(user, attributes_of(request), self.storage)
        handler = self.handlers.find(request)
        if handler is not None:
            respond, values = handler
            return await respond(request, values)
        route = resolve(request, self.table)
        if route is None:
            return self._document(request)
        # Negotiate first: a request whose response cannot be encoded must not change anything.
        negotiate(request.headers.get("accept", ""))
        return await self._respond(route, request, user)

    async def _respond(self, route: Route, request: Request, user: User) -> Response | Watch:
        """Route a request to the handler of its kind."""
        if route.row.resource.name == "bindings":
            return await self._binder.respond(route, request, user)
        if route.subresource == SUBRESOURCE:
            return await self._scaler.respond(route, request, user)
        if route.verb == "watch":
            return self._reader.watch(route, request)
        if route.verb in {"get", "list"}:
            return self._reader.respond(route, request)
        return await self._writing.respond(route, request, user)

    def _document(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        if path in _PROBES:
            return Response(status=200, headers={"content-type": "text/plain; charset=utf-8"}, body=b"ok")
        if path == "/version":
            return discovery.version()
        if path.startswith("/openapi/"):
            return openapi.respond(request, self.table)
        if path in {"/api", "/apis"}:
            return discovery.respond(request, self.table)
        if listed := discovery.resource_list(path, self.table):
            return listed
        raise no_such_path()


@lru_cache(maxsize=64)
def _date(second: datetime) -> str:
    """Return the Date header of that second, in which many requests may be answered."""
    return format_datetime(second, usegmt=True)
