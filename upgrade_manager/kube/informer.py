"""An in-memory copy of the objects of one selection, with handlers for their changes (client-go's informer)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.objects import metadata
from upgrade_manager.kube.reflector import Reflector
from upgrade_manager.kube.store import Change, Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection

Handler: TypeAlias = Callable[[Change], None]

_log = structlog.get_logger(__name__)


def without_managed_fields(obj: Object) -> Object:
    """Remove managedFields, which are never read and make up half of many objects."""
    metadata(obj).pop("managedFields", None)
    return obj


class InformerMetrics(Protocol):
    """Metrics of informers."""

    def on_restart(self, resource: str, operation: str, reason: str) -> None:
        """Record that a `list` has replaced the store or a `watch` has ended, and why."""
        ...

    def on_progress(self, resource: str, informer: str, events: int, objects: int) -> None:
        """Record a list or batch: the events received, bookmarks included, and the objects stored."""
        ...

    def on_stop(self, resource: str, informer: str) -> None:
        """Record that the informer has stopped."""
        ...


class _NoMetrics:
    """Records nothing."""

    def on_restart(self, *_: object) -> None:
        pass

    def on_progress(self, *_: object) -> None:
        pass

    def on_stop(self, *_: object) -> None:
        pass


_NO_METRICS = _NoMetrics()


class Informer:
    """Keeps `store` in sync with one selection, and calls the handlers for every change.

    Handlers run on the loop after the store has changed, in the order given. They should only enqueue keys. An
    exception of a handler is logged. `transform` runs once for each object before it is stored and may modify
    it in place. Metrics identify the informer by `name` and its selection.
    """

    def __init__(
        self,
        client: Client,
        selection: Selection,
        *,
        name: str = "",
        transform: Callable[[Object], Object] = without_managed_fields,
        handlers: Sequence[Handler] = (),
        random: Random,
        metrics: InformerMetrics = _NO_METRICS,
    ) -> None:
        self.store = Store()
        self.transform = transform
        self.resource = selection.resource.name
        self._handlers = tuple(handlers)
        self._name = f"{name} {selection}".strip()
        self._metrics = metrics
        self._synced = asyncio.Event()
        #: Callers of `wait_for_version`, by the number that they wait for.
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._reflector = Reflector(
            client, selection, store=self, random=random, on_restart=partial(metrics.on_restart, self.resource)
        )

    async def run(self) -> NoReturn:
        """List and watch until cancelled; raises only what a transform raises."""
        try:
            await self._reflector.run()
        finally:
            self._metrics.on_stop(self.resource, self._name)

    async def wait_for_sync(self) -> None:
        """Wait until the first list is in the store and the handlers were called for it."""
        await self._synced.wait()

    @property
    def has_synced(self) -> bool:
        """True once the first list is in the store."""
        return self._synced.is_set()

    @property
    def last_error(self) -> str:
        """The error of the last list; "" after a success."""
        return self._reflector.last_error

    @property
    def failing_for(self) -> float:
        """Seconds without a working watch; 0 while one is open."""
        since = self._reflector.failing_since
        return 0.0 if since is None else loop_time() - since

    @property
    def following_for(self) -> float:
        """Seconds since the open watch began; 0 without one: the store may be out of date."""
        since = self._reflector.following_since
        return 0.0 if since is None else loop_time() - since

    async def wait_for_version(self, resource_version: str, *, timeout: float = 5.0) -> bool:  # noqa: ASYNC109
        """Wait until the store has reached a resourceVersion, such as that of the caller's write.

        Return False after the timeout: the store is usable, but older than the write.
        """
        wanted = version_number(resource_version)
        if self._reached() >= wanted:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (wanted, future)
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            return False
        finally:
            self._waiters.remove(waiter)
        return True

    def replace(self, items: list[Object], version: str) -> None:
        """Hold exactly these objects; the reflector calls it after a list."""
        for change in self.store.replace(items, version):
            self._notify(change)
        self._synced.set()

    def put(self, obj: Object) -> None:
        """Add or update an object; the reflector calls it for each event."""
        for change in self.store.put(self.transform(obj)):
            self._notify(change)

    def delete(self, obj: Object) -> None:
        """Remove an object; the reflector calls it for each event."""
        for change in self.store.delete(self.transform(obj)):
            self._notify(change)

    def advance(self, version: str, *, events: int) -> None:
        """Record the version that the store has reached; the reflector calls it after each list and batch."""
        self.store.resource_version = version
        self._metrics.on_progress(self.resource, self._name, events, len(self.store))
        if self._waiters:
            reached = self._reached()
            for wanted, future in self._waiters:
                if wanted <= reached and not future.done():
                    future.set_result(None)

    def _notify(self, change: Change) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception:  # noqa: BLE001  # the other handlers still run
                _log.exception("handler failed", resource=self.resource, change=change.kind.value)

    def _reached(self) -> int:
        return version_number(self.store.resource_version) if self.has_synced else -1


def version_number(resource_version: str) -> int:
    """Return the version as a number: those of one resource are comparable (KEP-5504)."""
    return int(resource_version) if resource_version.isdecimal() else 0
