"""Logs each error of a key once, however often it repeats.

controller.py and webhook/certificates/rotation.py log by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from upgrade_manager.kube.errors import Conflict, Gone, KubeError, Throttled, Transient
from upgrade_manager.runtime.result import RetryError, TerminalError

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

#: Errors of the environment, which a retry may resolve: logged as warnings without a traceback.
TRANSIENT = (Conflict, Gone, RetryError, Throttled, Transient, TimeoutError, ConnectionError)
#: Errors that a reconcile raises on purpose; any other is a bug, counted as a panic.
EXPECTED = (KubeError, RetryError, TerminalError, TimeoutError, OSError)
#: Distinct errors remembered per key.
_MAX_ERRORS = 16

Fingerprint: TypeAlias = tuple[type[BaseException], str, str, int]


def fingerprint(error: BaseException) -> Fingerprint:
    """Return the error's type, message and raising line, which are equal for repetitions."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None:
        return (type(error), str(error), "", 0)
    return (type(error), str(error), frame.tb_frame.f_code.co_filename, frame.tb_lineno)


class ErrorLog:
    """Logs the first of equal errors as a warning or, with its traceback, as an error; repetitions at debug level."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        #: The distinct errors, oldest first, of each key whose last reconcile failed.
        self._seen: dict[str, dict[Fingerprint, None]] = {}

    def failed(self, key: str, error: Exception, *, failures: int) -> None:
        """Log the error of a reconcile; `failures` counts consecutive failures."""
        seen = self._seen.setdefault(key, {})
        mark = fingerprint(error)
        name = type(error).__name__
        fields = {"error": str(error) or name, "error_type": name, "failures": failures}
        if mark in seen:
            self._log.debug("reconcile failed again", **fields)
            return
        seen[mark] = None
        if len(seen) > _MAX_ERRORS:
            del seen[next(iter(seen))]
        if isinstance(error, TRANSIENT):
            self._log.warning("reconcile failed", **fields)
        else:
            self._log.error("reconcile failed", exc_info=error, **fields)

    def deleted(self, key: str) -> None:
        """Forget the errors of the key."""
        self._seen.pop(key, None)

    def succeeded(self, key: str) -> None:
        """Log the recovery of the key, if its last reconcile failed."""
        if self._seen.pop(key, None) is not None:
            self._log.info("reconcile recovered")
