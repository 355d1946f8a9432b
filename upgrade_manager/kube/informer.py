"""A kind of object in memory, kept equal to the API server's, and whoever wants to hear of its changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import structlog

from upgrade_manager.kube.objects import metadata
from upgrade_manager.kube.observer import InformerObserver
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.reflector import Reflector
from upgrade_manager.kube.retry import Backoff
from upgrade_manager.kube.store import Change, Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource


Handler: TypeAlias = Callable[[Change], None]

_log = structlog.get_logger(__name__)


def without_managed_fields(obj: Object) -> Object:
    """The default transform: who last wrote which field is half of many objects, and nobody here reads it."""
    metadata(obj).pop("managedFields", None)
    return obj


class Informer:
    """Lists and watches one selection of one kind into `store`, and tells handlers of every change.

    Handlers run on the loop after the store has changed, in the order given: they map the object to keys and enqueue
    those, nothing more. One that raises is logged and misses that change; the others and the store do not suffer.
    `transform` runs once for each object before it is stored and may change it in place.
    """

    def __init__(  # noqa: PLR0913  # a selection has that many sides
        self,
        client: Client,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        transform: Callable[[Object], Object] = without_managed_fields,
        handlers: Sequence[Handler] = (),
        random: Random,
        observer: InformerObserver | None = None,
    ) -> None:
        self.store = Store()
        self._resource = resource
        self._transform = transform
        self._handlers = tuple(handlers)
        self._observer = observer or InformerObserver()
        self._synced = asyncio.Event()
        #: Those who wait for a resourceVersion, with the number that they wait for.
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        selection = Selection(
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )
        self._reflector = Reflector(
            client,
            resource,
            selection,
            sink=self,
            backoff=Backoff(random=random),
            random=random,
            observer=self._observer,
        )

    async def run(self) -> NoReturn:
        """Until cancelled; raises only what a transform raises."""
        await self._reflector.run()

    async def synced(self) -> None:
        """Returns once the first list is in the store and the handlers were told of it."""
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        """Whether `synced` would return at once."""
        return self._synced.is_set()

    @property
    def trouble(self) -> str:
        """Why the last list failed; empty where it did not."""
        return self._reflector.trouble

    async def observed(self, resource_version: str, *, timeout: float = 5.0) -> bool:  # noqa: ASYNC109  # an answer, not an error
        """Whether the store has reached that version, such as our own write's, within so many seconds.

        False means: act on what the store shows, but expect it to be older than the write.
        """
        wanted = _number(resource_version)
        if self._reached() >= wanted:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (wanted, future)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            return False
        finally:
            self._waiting.remove(entry)
        return True

    def prepare(self, obj: Object) -> Object:
        """For the reflector: what `replace` is to be given of it."""
        return self._transform(obj)

    def replace(self, items: list[Object], version: str) -> None:
        """For the reflector: exactly these objects exist."""
        for change in self.store.replace(items, version):
            self._tell(change)
        self._synced.set()
        self.advance(version)

    def put(self, obj: Object) -> None:
        """For the reflector: the object was added or modified."""
        for change in self.store.put(self._transform(obj)):
            self._tell(change)

    def drop(self, obj: Object) -> None:
        """For the reflector: the object was deleted."""
        for change in self.store.delete(self._transform(obj)):
            self._tell(change)

    def advance(self, version: str) -> None:
        """For the reflector: the store stands there now."""
        self.store.resource_version = version
        self._observer.objects_stored(self._resource.name, count=len(self.store))
        if self._waiting:
            reached = self._reached()
            for wanted, future in self._waiting:
                if wanted <= reached and not future.done():
                    future.set_result(None)

    def _tell(self, change: Change) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception:  # noqa: BLE001  # a fault in one handler is not the others' concern
                _log.exception("handler failed", resource=self._resource.name, change=change.kind.value)

    def _reached(self) -> int:
        return _number(self.store.resource_version) if self._synced.is_set() else -1


def _number(resource_version: str) -> int:
    """The versions of one kind are decimal numbers that grow (KEP-5504); what is none is below all."""
    return int(resource_version) if resource_version.isdecimal() else 0
