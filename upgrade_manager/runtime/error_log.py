"""Says of each failure once what it was, however often it repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from upgrade_manager.kube.errors import Conflict, Gone, KubeError, Throttled, Transient
from upgrade_manager.runtime.result import RetryError, TerminalError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from structlog.typing import FilteringBoundLogger

K = TypeVar("K", bound="Hashable")

#: What passes by itself: the world outside, not a mistake in here.
PASSING = (Conflict, Gone, RetryError, Throttled, Transient, TimeoutError, ConnectionError)
#: What a reconcile may raise knowingly; anything else is a bug (controller-runtime would call it a panic).
EXPECTED = (KubeError, RetryError, TerminalError, TimeoutError, OSError)

#: Distinct failures remembered of one key; more than that are one failure whose text keeps changing.
_REMEMBERED = 16

Fingerprint: TypeAlias = tuple[type[BaseException], str, str, int]


def fingerprint(error: BaseException) -> Fingerprint:
    """Equal for two failures that a reader would call the same: type, text and the line that raised."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None:
        return (type(error), str(error), "", 0)
    return (type(error), str(error), frame.tb_frame.f_code.co_filename, frame.tb_lineno)


class FailureLog(Generic[K]):
    """Logs the failures of a controller's keys.

    The first of its kind is an error with its traceback, or a warning without if it passes by itself; repetitions are
    debug lines; the success that ends a row of failures is told too.
    """

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        #: Only keys whose last run failed; of each the distinct failures, oldest first.
        self._seen: dict[K, dict[Fingerprint, None]] = {}

    def failed(self, key: K, error: Exception, *, failures: int) -> None:
        """Tell of a failure, the so many-th in a row."""
        seen = self._seen.setdefault(key, {})
        mark = fingerprint(error)
        fields = {"error": str(error), "error_type": type(error).__name__, "failures": failures}
        if mark in seen:
            self._log.debug("reconcile failed again", **fields)
            return
        seen[mark] = None
        if len(seen) > _REMEMBERED:
            del seen[next(iter(seen))]
        if isinstance(error, PASSING):
            self._log.warning("reconcile failed", **fields)
        else:
            self._log.error("reconcile failed", exc_info=error, **fields)

    def succeeded(self, key: K) -> None:
        """Tell that the failures are over, if there were any."""
        if self._seen.pop(key, None) is not None:
            self._log.info("reconcile recovered")
