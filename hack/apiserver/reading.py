"""Get, list and watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.listing import FUTURE_SECONDS, Lister
from hack.apiserver.listoptions import ListOptions, list_options
from hack.apiserver.presentation import View, negotiate
from hack.apiserver.status import JSON_HEADERS, not_found, too_large_version
from hack.apiserver.watch import Watch, WatchOptions
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage
    from upgrade_manager.kube.transport import Request

#: Seconds after which the server ends a watch that names no time-out: this, up to twice as much.
LEAST_WATCH_SECONDS = 1800.0


def view(route: Route, request: Request, now: Callable[[], datetime]) -> View:
    """How the client of a request wants to see objects. Raises StatusError 406."""
    form = negotiate(request.headers.get("accept", ""))
    include = dict(request.query).get("includeObject", "Metadata")
    return View(row=route.row, form=form, include_object=include, now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Answers reading requests."""

    storage: Storage
    lister: Lister
    now: Callable[[], datetime]
    random: Random

    async def respond(self, route: Route, request: Request) -> Response:
        """Answer a get or list. Raises StatusError."""
        seen = view(route, request, self.now)
        if route.verb == "get":
            stored = self.storage.get(route.row.storage, route.key)
            if stored is None:
                raise not_found(route.row.resource, route.name)
            return Response(status=200, headers=JSON_HEADERS, body=seen.one(stored))
        options = list_options(request, route.row)
        page = await self.lister.page(self.storage.collection(route.row.storage), route.namespace, options)
        return Response(status=200, headers=JSON_HEADERS, body=seen.listing(page.states, page.metadata))

    async def watch(self, route: Route, request: Request) -> Watch:
        """A watch, which the caller must close. Raises StatusError."""
        seen = view(route, request, self.now)
        options = list_options(request, route.row)
        revision = options.revision
        if revision > self.storage.revision and not await self.storage.reached(revision, timeout=FUTURE_SECONDS):
            raise too_large_version(revision, self.storage.revision)
        wanted = WatchOptions(
            namespace=route.namespace,
            selector=options.selector,
            since=revision or None,
            bookmarks=options.allow_bookmarks,
            duration=self._duration(options),
        )
        return Watch(self.storage, self.storage.collection(route.row.storage), seen, wanted)

    def _duration(self, options: ListOptions) -> float:
        return float(options.timeout_seconds) or LEAST_WATCH_SECONDS * (1 + self.random.random())
