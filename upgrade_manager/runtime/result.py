"""Results and errors of a reconcile, which determine when its key is reconciled next (as in controller-runtime)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Done:
    """Reconcile again when something changes."""

    #: True if the object was deleted; its last error has not recovered.
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Requeue:
    """Reconcile again after the rate limiter's delay, without an error."""


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Reconcile again in so many seconds, or earlier when something changes."""

    seconds: float
    #: False if a stale cache hides whether the reconcile is complete.
    is_reconciled: bool = True


Result: TypeAlias = Done | Requeue | RequeueAfter


class TerminalError(Exception):
    """A retry cannot help: the key is reconciled again only when something changes."""


class RetryError(Exception):
    """The environment is not as required: retried after the rate limiter's delay, and logged without a traceback."""


class ReconcileTimeout(RetryError):
    """The reconcile exceeded its time limit."""
