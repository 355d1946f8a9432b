"""Streaming lists (KEP-3157, WatchList): a watch that first brings whatever exists, and then goes on as a watch.

One request instead of two, and objects are decoded as they come instead of in one long answer. The rules are those of
client-go's watchList (tools/cache/reflector.go). Departures: a server that does not offer it is remembered, one that
never says where its initial events end is not waited for without end, and no stream that ends early is followed by the
next one at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import TIMED_OUT, Forbidden, KubeError, Terminal, Transient
from upgrade_manager.kube.objects import annotations_of, key

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.decoder import WatchEvent
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.watch import EventReader, Watch

#: Seconds for all initial events together, as many as a list is given; 10,000 Pods of 5 kB take about two.
INITIAL_TIMEOUT = 60.0
#: Seconds after which a server that did not offer streaming lists is asked again: clusters are upgraded while we run.
FORGOTTEN_AFTER = 3600.0
#: The annotation, then `true`, of the bookmark behind the last initial event.
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Unended(Transient):
    """The initial events did not end as they should: the server closed the stream, or never sent the bookmark."""


class WatchLists:
    """Whether a server offers streaming lists: what one reflector has found out, for all that share a client.

    Being wrong is cheap either way: one more request for each list while it is remembered, or one refused request.
    """

    def __init__(self) -> None:
        #: The loop's time until which nobody asks.
        self._refused_until = 0.0

    def are_worth_asking_for(self) -> bool:
        """Whether the server is not known to be without them."""
        return loop_time() >= self._refused_until

    def were_refused(self) -> None:
        """The server has none."""
        self._refused_until = loop_time() + FORGOTTEN_AFTER


class InitialEvents:
    """What a streaming list has brought so far, out of everyone's sight until it is complete."""

    def __init__(self, prepare: Callable[[Object], Object]) -> None:
        """`prepare` gives what to keep of an object; only that is kept."""
        self._prepare = prepare
        self._objects: dict[tuple[str, str], Object] = {}

    def put(self, obj: Object) -> None:
        """For the reader: the object exists, or was changed meanwhile."""
        self._objects[key(obj)] = self._prepare(obj)

    def drop(self, obj: Object) -> None:
        """For the reader: the object was deleted meanwhile."""
        self._objects.pop(key(obj), None)

    def objects(self) -> list[Object]:
        """All of them, in the order in which they came."""
        return list(self._objects.values())

    async def collect(self, watch: Watch, reader: EventReader, *, heard: Callable[[int], None]) -> str:
        """Read up to the bookmark, not further; the resourceVersion at which the objects are complete.

        `heard` is told how many events each read brought. Raises Unended, and what the reader and the watch raise.
        """
        try:
            async with asyncio.timeout(INITIAL_TIMEOUT):
                async for events in watch:
                    heard(len(events))
                    for index, event in enumerate(events):
                        version = reader.hand_on(event, self)
                        if version and _is_end(event):
                            watch.unread(events[index + 1 :])
                            return version
        except TimeoutError as error:
            message = f"{reader.about}: no end of the initial events within {INITIAL_TIMEOUT:g} s"
            raise Unended(message, reason=TIMED_OUT) from error
        raise Unended(f"{reader.about}: the stream was closed before its initial events were complete")


def is_not_offered(error: KubeError) -> bool:
    """Whether a streaming list failed as on a server without them, provided that a plain list then succeeds.

    An older server calls the parameters invalid (422, 400), one older still ignores them and never sends the bookmark.
    What was wrong with the request besides them, such as a selector, is wrong in a list too, which then fails.
    """
    return isinstance(error, Unended) or (isinstance(error, Terminal) and not isinstance(error, Forbidden))


def _is_end(event: WatchEvent) -> bool:
    return event.type == "BOOKMARK" and annotations_of(event.object).get(INITIAL_EVENTS_END) == "true"
