"""Get, list and watch requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.apiserver.list_options import ListOptions, list_options
from hack.apiserver.presentation import View, negotiate
from hack.apiserver.status import JSON_HEADERS, StatusError, not_a_version, not_found, too_large_version
from hack.apiserver.watch import Watch, WatchOptions
from upgrade_manager.kube.transport import Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from random import Random

    from hack.apiserver.listing import Lister
    from hack.apiserver.route import Route
    from hack.apiserver.storage import Storage
    from upgrade_manager.kube.transport import Request

#: The minimum duration in seconds of a watch without timeoutSeconds; the maximum is twice as much.
LEAST_WATCH_SECONDS = 1800.0


def view(route: Route, request: Request, now: Callable[[], datetime]) -> View:
    """Return the form in which the client wants objects. Raises StatusError 406."""
    form = negotiate(request.headers.get("accept", ""))
    return View(row=route.row, form=form, include_object=dict(request.query).get("includeObject", ""), now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Handler of get, list and watch requests."""

    storage: Storage
    lister: Lister
    now: Callable[[], datetime]
    random: Random

    def respond(self, route: Route, request: Request) -> Response:
        """Return the response to a get or list. Raises StatusError."""
        seen = view(route, request, self.now)
        if route.verb == "get":
            revision = _revision(dict(request.query).get("resourceVersion", ""))
            if revision > self.storage.revision:
                raise too_large_version(revision, self.storage.revision)
            stored = self.storage.get(route.row.storage, route.key)
            if stored is None:
                raise not_found(route.row.resource, route.name)
            return Response(status=200, headers=JSON_HEADERS, body=seen.one(stored))
        options = list_options(request, route.row)
        page = self.lister.page(self.storage.collection(route.row.storage), route.namespace, options)
        return Response(status=200, headers=JSON_HEADERS, body=seen.listing(page.states, page.metadata))

    def watch(self, route: Route, request: Request) -> Watch:
        """Return a watch, which the caller must close. Raises StatusError."""
        seen = view(route, request, self.now)
        options = list_options(request, route.row)
        revision = _revision(options.resource_version)
        watch_options = WatchOptions(
            namespace=route.namespace,
            selector=options.selector,
            since=revision or None,
            bookmarks=options.allow_bookmarks,
            duration=self._duration(options),
        )
        return Watch(self.storage, self.storage.collection(route.row.storage), seen, watch_options)

    def _duration(self, options: ListOptions) -> float:
        return float(options.timeout_seconds) or LEAST_WATCH_SECONDS * (1 + self.random.random())


def _revision(text: str) -> int:
    """Parse a resourceVersion; 0 if empty. Raises StatusError 500: only lists report it as a bad request."""
    if text and not text.isdigit():
        raise StatusError(code=500, reason="", message=not_a_version(text))
    return int(text or 0)
