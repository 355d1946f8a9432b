"""Streaming lists (WatchList, KEP-3157): a watch that starts with all existing objects and continues as a watch.

They need one request instead of two, and objects are decoded as they arrive. The rules are those of client-go's
watchList (tools/cache/reflector.go). Departures: missing support is remembered, the initial events have a timeout, and
a stream that ends early is never retried at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import TIMED_OUT, Forbidden, KubeError, Terminal, Transient
from upgrade_manager.kube.objects import annotations_of, key
from upgrade_manager.kube.watch import apply_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from upgrade_manager.kube.decoder import WatchEvent
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.pager import Selection
    from upgrade_manager.kube.watch import StreamWatcher

#: Seconds for all initial events, as for a list; 10,000 Pods of 5 kB take about two.
INITIAL_EVENTS_TIMEOUT = 60.0
#: Seconds until a server without streaming lists is probed again: it may have been upgraded.
PROBE_INTERVAL = 3600.0
#: The annotation, with value `true`, of the bookmark that ends the initial events.
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchListSupport:
    """Remembers whether a server supports streaming lists, for all reflectors of a client.

    A wrong value costs one more request for each list.
    """

    def __init__(self) -> None:
        #: The loop time at which the server is probed again.
        self._probe_at = 0.0

    def is_assumed(self) -> bool:
        """Return True if the server is assumed to support streaming lists."""
        return loop_time() >= self._probe_at

    def mark_unsupported(self) -> None:
        """Request plain lists for a while."""
        self._probe_at = loop_time() + PROBE_INTERVAL


class InitialEvents:
    """A temporary store for the initial events; readers see its objects once they are complete."""

    def __init__(self, selection: Selection, transform: Callable[[Object], Object]) -> None:
        self._selection = selection
        self._transform = transform
        self._objects: dict[tuple[str, str], Object] = {}
        #: Events applied so far.
        self.received = 0

    def put(self, obj: Object) -> None:
        """Add or update an object."""
        self._objects[key(obj)] = self._transform(obj)

    def delete(self, obj: Object) -> None:
        """Remove an object."""
        self._objects.pop(key(obj), None)

    def objects(self) -> list[Object]:
        """Return all objects, in the order of arrival."""
        return list(self._objects.values())

    async def collect(self, watcher: StreamWatcher) -> str:
        """Read up to the final bookmark; return its resourceVersion.

        Raises Transient if the stream ends, or the timeout expires, before; and the errors of the watcher and of
        `apply_event`.
        """
        about = f"list {self._selection.resource.name}"
        try:
            async with asyncio.timeout(INITIAL_EVENTS_TIMEOUT):
                async for events in watcher:
                    for index, event in enumerate(events):
                        self.received += 1
                        version = apply_event(event, self._selection, self)
                        if version and _is_end(event):
                            watcher.unread(events[index + 1 :])
                            return version
        except TimeoutError as error:
            message = f"{about}: the initial events did not end within {INITIAL_EVENTS_TIMEOUT:g} s"
            raise Transient(message, reason=TIMED_OUT) from error
        raise Transient(f"{about}: the stream was closed before the end of its initial events")


def is_unsupported(error: KubeError) -> bool:
    """Return True if the error of a streaming list shows missing support, provided that a plain list then succeeds.

    Such a server rejects the parameters (422, 400). With other invalid parameters, such as a selector, the plain list
    fails too. A stream that ends early shows nothing: the server may restart.
    """
    return isinstance(error, Terminal) and not isinstance(error, Forbidden)


def _is_end(event: WatchEvent) -> bool:
    return event.type == "BOOKMARK" and annotations_of(event.object).get(INITIAL_EVENTS_END) == "true"
