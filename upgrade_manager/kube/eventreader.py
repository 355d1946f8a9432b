"""What an event of a watch says about one selection of one kind, and what is no news about it at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from upgrade_manager.kube.client import named_metadata
from upgrade_manager.kube.objects import resource_version
from upgrade_manager.kube.status import error_from_status

if TYPE_CHECKING:
    from upgrade_manager.kube.decoder import WatchEvent
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection
    from upgrade_manager.kube.resource import Resource

_log = structlog.get_logger(__name__)


class Keeper(Protocol):
    """Whoever holds the objects that events are about."""

    def put(self, obj: Object) -> None:
        """The object was added or modified."""
        ...

    def drop(self, obj: Object) -> None:
        """The object was deleted; this is its last state."""
        ...


class EventReader:
    """Hands the objects of events on to a keeper. Events that make no sense are logged and skipped."""

    def __init__(self, resource: Resource, selection: Selection) -> None:
        self._resource = resource
        self._selection = selection
        self._log = _log.bind(resource=resource.name)
        #: How errors name what is read.
        self.about = f"watch {resource.name}"

    def hand_on(self, event: WatchEvent, keeper: Keeper) -> str:
        """The resourceVersion that the event reaches; nothing for one that was skipped.

        Raises the error that an ERROR event tells of, and Terminal for more than the metadata that was asked for.
        """
        obj = event.object
        if event.type == "ERROR":
            raise error_from_status(self.about, obj)
        version = resource_version(obj) if self._is_expected(obj) else ""
        if not version:
            self._log.warning("unexpected object in a watch", type=event.type)
            return ""
        if self._selection.metadata_only:
            obj = named_metadata(self._resource, obj)
        if event.type in {"ADDED", "MODIFIED"}:
            keeper.put(obj)
        elif event.type == "DELETED":
            keeper.drop(obj)
        elif event.type != "BOOKMARK":
            self._log.warning("unknown type of event in a watch", type=event.type)
        return version

    def _is_expected(self, obj: Object) -> bool:
        # Whole objects in a metadata watch are let through here, to be refused aloud.
        return self._selection.metadata_only or obj.get("kind") == self._resource.kind
