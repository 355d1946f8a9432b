"""How lists and watches end and what follows: client-go's error matrix, as data.

Only a watch may be reopened where it ended, at the last resourceVersion; everything else starts a new cycle, which is a
streaming list, where the server offers that, or a list, and then watches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.kube.decoder import Undecodable
from upgrade_manager.kube.errors import REFUSED, Gone, Throttled, Transient, is_too_large

if TYPE_CHECKING:
    from upgrade_manager.kube.errors import KubeError

#: A watch that closes sooner, in seconds, and brought nothing, is no watch that works.
VERY_SHORT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a cycle or a watch ended, and what to do next."""

    #: For metrics and logs; few words in all.
    reason: str
    relist: bool
    #: Whether to wait a step of the backoff first.
    back_off: bool
    #: Whether someone should know.
    report: bool = False
    #: Seconds that the server asked for.
    patience: float = 0.0


#: A stream that ended as streams do.
CLOSED = Ending(reason="closed", relist=False, back_off=False)
#: One that closed at once, but brought something.
QUICK = Ending(reason="quick", relist=False, back_off=False)
SHORT = Ending(reason="short", relist=True, back_off=True)
EXPIRED = Ending(reason="expired", relist=True, back_off=True)


def after_close(*, lived: float, events: int) -> Ending:
    """The stream of a watch ended or broke, after `lived` seconds and so many events."""
    if lived >= VERY_SHORT:
        return CLOSED
    return QUICK if events else SHORT


def after_connect(error: KubeError) -> Ending:
    """A watch could not be opened."""
    if isinstance(error, Throttled):
        return Ending(reason="throttled", relist=False, back_off=True, report=True, patience=error.retry_after)
    if isinstance(error, Transient) and not error.status:
        if error.reason == REFUSED:
            return Ending(reason="refused", relist=False, back_off=True, report=True)
        # client-go hands over a stream that is closed already when its retries are used up.
        return Ending(reason="unreachable", relist=True, back_off=True, report=True)
    return after_list(error)


def after_error_event(error: KubeError) -> Ending:
    """The server ended a watch with an ERROR event, or with what is no event at all."""
    if isinstance(error, Throttled) and error.status in (0, 429):
        return Ending(reason="throttled", relist=False, back_off=True, report=True, patience=error.retry_after)
    return after_list(error)


def after_list(error: KubeError) -> Ending:
    """A list failed for good, or a watch with an error that has no rule of its own."""
    if isinstance(error, Gone):
        return EXPIRED
    patience = error.retry_after if isinstance(error, Throttled) else 0.0
    reason = "undecodable" if isinstance(error, Undecodable) else "error"
    return Ending(reason=reason, relist=True, back_off=True, report=True, patience=patience)


def is_out_of_reach(error: KubeError) -> bool:
    """Whether the server cannot list at that resourceVersion, but may at its newest.

    Servers too old to name the cause answer to a version that they have not reached with a Timeout without causes.
    """
    if isinstance(error, Gone) or is_too_large(error):
        return True
    return error.reason == "Timeout" and not error.details.get("causes")


def calls_for_list(error: KubeError) -> bool:
    """Whether a plain list may do better than the streaming list that failed: not where nobody serves us just now."""
    return not isinstance(error, Throttled) and error.reason != REFUSED
