"""The endings of lists and watches, and the reflector's reaction to each (client-go's rules, as data).

A watch may be reopened at the last resourceVersion. Any other ending starts a new cycle: a streaming list if the server
supports it, else a list and a watch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.errors import Gone, Throttled, Transient, is_refused, is_too_large_resource_version

if TYPE_CHECKING:
    from upgrade_manager.kube.errors import KubeError

#: Seconds; a watch that is closed sooner without an event counts as failed.
VERY_SHORT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The cause of the end of a list or a watch, and the reaction."""

    #: For metrics and logs: one of few values.
    reason: str
    relist: bool
    #: True to wait for the backoff first.
    back_off: bool
    #: True to log a warning.
    is_warning: bool = False
    #: Seconds, from the server.
    retry_after: float = 0.0


#: The server ended the watch as usual.
CLOSED = Ending(reason="closed", relist=False, back_off=False)
#: The server ended the watch at once, but after an event.
QUICK = Ending(reason="quick", relist=False, back_off=False)
SHORT = Ending(reason="short", relist=True, back_off=True)
#: 410 Gone, as a response or as an event of the stream.
EXPIRED = Ending(reason="expired", relist=True, back_off=True)


def after_close(*, age: float, events: int) -> Ending:
    """Return the ending of a watch that was closed or broke after `age` seconds."""
    if age >= VERY_SHORT:
        return CLOSED
    return QUICK if events else SHORT


def after_connect(error: KubeError) -> Ending:
    """Return the ending of a watch that could not be opened."""
    if isinstance(error, Throttled):
        return _throttled(error)
    if isinstance(error, Transient) and not error.status:
        if is_refused(error):
            return Ending(reason="refused", relist=False, back_off=True, is_warning=True)
        # client-go treats it as a stream that is already closed once its retries are used up.
        return Ending(reason="unreachable", relist=True, back_off=True, is_warning=True)
    return after_list(error)


def after_error_event(error: KubeError) -> Ending:
    """Return the ending of a watch after an ERROR event or a line that is not an event."""
    if isinstance(error, Throttled) and error.status in (0, 429):
        return _throttled(error)
    return after_list(error)


def after_list(error: KubeError) -> Ending:
    """Return the ending of a list that failed, or of a watch with any other error."""
    if isinstance(error, Gone):
        return EXPIRED
    retry_after = error.retry_after if isinstance(error, Throttled) else 0.0
    reason = "undecodable" if isinstance(error, Undecodable) else "error"
    return Ending(reason=reason, relist=True, back_off=True, is_warning=True, retry_after=retry_after)


def is_version_unavailable(error: KubeError) -> bool:
    """Return True if the server cannot list at the requested resourceVersion, but perhaps at the latest."""
    return isinstance(error, Gone) or is_too_large_resource_version(error)


def may_list_instead(error: KubeError) -> bool:
    """Return True if a plain list may succeed after this error of a streaming list: the server is up and not busy."""
    return not isinstance(error, Throttled) and not is_refused(error)


def _throttled(error: Throttled) -> Ending:
    return Ending(reason="throttled", relist=False, back_off=True, is_warning=True, retry_after=error.retry_after)
