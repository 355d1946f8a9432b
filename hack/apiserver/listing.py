"""Lists: the current state, or pages of one snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.apiserver.status import bad_request, expired, too_large_version

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hack.apiserver.list_options import ListOptions
    from hack.apiserver.storage import Collection, Storage
    from hack.apiserver.stored import Stored

#: Lifetime of a continue token in seconds, as etcd compacts its history.
TOKEN_SECONDS = 300.0

#: A snapshot: collection, namespace, revision.
_Snapshot = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The result of a list."""

    states: list[Stored]
    #: The ListMeta.
    metadata: dict[str, Any]


class Lister:
    """Lists objects of the store.

    The snapshot of a page with a continue token is kept until the token expires, so that all pages show one revision.
    """

    def __init__(self, storage: Storage, *, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._now = now
        #: Snapshot -> the end of its lifetime and its objects.
        self._frozen: dict[_Snapshot, tuple[float, list[Stored]]] = {}

    def expire(self) -> None:
        """Invalidate all continue tokens."""
        self._frozen.clear()

    def page(self, collection: Collection, namespace: str, options: ListOptions) -> Page:
        """Return a list or one page of it. Raises StatusError 400, 410 or 504."""
        if options.continue_token:
            return self._next(collection, namespace, options)
        revision = self._storage.revision
        if options.revision > revision:
            raise too_large_version(options.revision, revision)
        name = options.selector.single_name
        found = collection.objects.get((namespace, name)) if name and namespace else None
        states = [found] if found else [] if name and namespace else collection.states(namespace)
        return self._slice((collection.name, namespace, revision), options, states)

    def _next(self, collection: Collection, namespace: str, options: ListOptions) -> Page:
        revision, _, after = options.continue_token.partition(":")
        if not revision.isdigit() or "/" not in after:
            raise bad_request("invalid continue token")
        snapshot = (collection.name, namespace, int(revision))
        expires, states = self._frozen.get(snapshot, (0.0, []))
        if expires < self._now().timestamp():
            raise expired("The provided continue parameter is too old to display a consistent list result.")
        last = tuple(after.split("/", 1))
        return self._slice(snapshot, options, [state for state in states if (state.namespace, state.name) > last])

    def _slice(self, snapshot: _Snapshot, options: ListOptions, states: list[Stored]) -> Page:
        selector = options.selector
        matching = [state for state in states if selector.matches(state.object)] if selector else states
        metadata: dict[str, Any] = {"resourceVersion": str(snapshot[2])}
        # The watch cache serves resourceVersion=0, without pages.
        limit = 0 if options.resource_version == "0" else options.limit
        if not limit or len(matching) <= limit:
            return Page(states=matching, metadata=metadata)
        last = matching[limit - 1]
        metadata["continue"] = f"{snapshot[2]}:{last.namespace}/{last.name}"
        if not selector:
            metadata["remainingItemCount"] = len(matching) - limit
        self._freeze(snapshot, states)
        return Page(states=matching[:limit], metadata=metadata)

    def _freeze(self, snapshot: _Snapshot, states: list[Stored]) -> None:
        now = self._now().timestamp()
        self._frozen = {known: entry for known, entry in self._frozen.items() if entry[0] >= now}
        self._frozen.setdefault(snapshot, (now + TOKEN_SECONDS, states))
