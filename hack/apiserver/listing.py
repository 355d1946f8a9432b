"""Lists: the current state, a past revision, or pages of one snapshot."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hack.apiserver.status import bad_request, expired, too_large_version

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from hack.apiserver.list_options import ListOptions
    from hack.apiserver.status import StatusError
    from hack.apiserver.storage import Collection, Storage
    from hack.apiserver.stored import Stored

#: Lifetime of a continue token in seconds, as etcd compacts its history.
TOKEN_SECONDS = 300.0
#: Time-out in seconds of a request for a future revision.
FUTURE_SECONDS = 3.0

_FORMAT = "meta.k8s.io/v1"
_OUTDATED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The result of a list."""

    states: list[Stored]
    #: The ListMeta.
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    """A continue token: the last object of the previous page; revision -1 for an inconsistent list.

    Its text is that of kube-apiserver: the key after that object's, below the path of the collection.
    """

    revision: int
    after: tuple[str, str]

    def text(self) -> str:
        value = {"v": _FORMAT, "rv": self.revision, "start": "/".join(self.after) + "\0"}
        return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> _Token:
        try:
            value = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
            version, revision, start = str(value["v"]), int(value["rv"]), str(value["start"])
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            raise _bad_token("it is not base64-encoded JSON") from error
        if version != _FORMAT:
            raise _bad_token(f"server does not recognize this encoded version {version}")
        namespace, _, name = start.removesuffix("\0").partition("/")
        return cls(revision=revision, after=(namespace, name))


def _bad_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


class Lister:
    """Serves lists and keeps the snapshots of unfinished ones."""

    def __init__(self, storage: Storage, *, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._now = now
        #: (collection, namespace, revision) -> its expiry and the states.
        self._frozen: dict[tuple[str, str, int], tuple[float, list[Stored]]] = {}

    def expire(self) -> None:
        """Expire all continue tokens."""
        self._frozen.clear()

    async def page(self, collection: Collection, namespace: str, options: ListOptions) -> Page:
        """Return a list or one page of it. Raises StatusError 400, 410 or 504."""
        if options.continue_token:
            return self._next(collection, namespace, options)
        revision = options.revision
        if revision > self._storage.revision and not await self._storage.reached(revision, timeout=FUTURE_SECONDS):
            raise too_large_version(revision, self._storage.revision)
        # The watch cache serves resourceVersion=0, without pages.
        limit = 0 if options.resource_version == "0" else options.limit
        exact = options.match == "Exact" or (limit > 0 and revision > 0 and not options.match)
        if not exact or revision == self._storage.revision:
            return self._cut(collection, namespace, options, limit, revision=self._storage.revision)
        states = collection.states_at(revision, namespace)
        if states is None:
            raise expired("The resourceVersion for the provided list is too old.")
        return self._slice(collection, namespace, options, limit, revision=revision, states=states)

    def _cut(self, collection: Collection, namespace: str, options: ListOptions, limit: int, *, revision: int) -> Page:
        name = options.selector.single_name
        if name and namespace:
            found = collection.objects.get((namespace, name))
            states = [found] if found else []
        else:
            states = collection.states(namespace)
        return self._slice(collection, namespace, options, limit, revision=revision, states=states)

    def _next(self, collection: Collection, namespace: str, options: ListOptions) -> Page:
        if options.resource_version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _Token.parse(options.continue_token)
        if token.revision < 0:
            revision, states = self._storage.revision, collection.states(namespace)
        else:
            revision, states = token.revision, self._thawed(collection, namespace, token)
        rest = [state for state in states if (state.namespace, state.name) > token.after]
        limit = 0 if options.resource_version == "0" else options.limit
        return self._slice(collection, namespace, options, limit, revision=revision, states=rest)

    def _thawed(self, collection: Collection, namespace: str, token: _Token) -> list[Stored]:
        expires, states = self._frozen.get((collection.name, namespace, token.revision), (0.0, []))
        if expires < self._now().timestamp():
            again = _Token(revision=-1, after=token.after).text()
            raise expired(_OUTDATED, continue_token=again)
        return states

    def _slice(
        self,
        collection: Collection,
        namespace: str,
        options: ListOptions,
        limit: int,
        *,
        revision: int,
        states: list[Stored],
    ) -> Page:
        selector = options.selector
        matching = [state for state in states if selector.matches(state.object)] if selector else states
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if not limit or len(matching) <= limit:
            return Page(states=matching, metadata=metadata)
        last = matching[limit - 1]
        metadata["continue"] = _Token(revision=revision, after=(last.namespace, last.name)).text()
        if not selector:
            metadata["remainingItemCount"] = len(matching) - limit
        self._freeze((collection.name, namespace, revision), states)
        return Page(states=matching[:limit], metadata=metadata)

    def _freeze(self, key: tuple[str, str, int], states: list[Stored]) -> None:
        now = self._now().timestamp()
        self._frozen = {known: entry for known, entry in self._frozen.items() if entry[0] >= now}
        self._frozen.setdefault(key, (now + TOKEN_SECONDS, states))
