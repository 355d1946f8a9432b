"""What an informer and a transport tell the metrics, without knowing any."""

from __future__ import annotations


class InformerObserver:
    """Hears what informers do; this one ignores it. Methods must not block or raise."""

    def relisted(self, resource: str, *, reason: str) -> None:
        """A list has replaced the store; reason is `start`, or how the watch before it ended."""

    def watch_restarted(self, resource: str, *, reason: str) -> None:
        """A watch ended, and why."""

    def events_received(self, resource: str, *, count: int) -> None:
        """So many events came in one read, bookmarks included: the resource is alive."""

    def objects_stored(self, resource: str, *, count: int) -> None:
        """The store's size after a list or a batch of events."""


class RequestObserver:
    """Hears of every request on the wire; this one ignores it. Methods must not block or raise."""

    def answered(self, *, method: str, host: str, code: str, seconds: float) -> None:
        """An answer's headers, or the failure to get them (code `<error>`), came after so many seconds."""
