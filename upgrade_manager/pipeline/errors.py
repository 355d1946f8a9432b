"""Errors that are retried; meanwhile the plan is Degraded with their message.

    RetryError          base class
    ├── MissingObject   an object that the upgrade requires does not exist
    ├── ForeignObject   an object that the upgrade would create exists and belongs to another owner
    └── BadCluster      continuing would damage the cluster in its current state

Errors of the upgrade repository are in release/errors.py.
An error with waits is not raised: the phase returns `Waiting` with both (outcome.py).
An error that ends the upgrade is not raised: the phase returns `Failed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGER
from upgrade_manager.kube.errors import Forbidden, KubeError
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.runtime.result import RetryError

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

__all__ = [
    "LOGS",
    "BadCluster",
    "ForeignObject",
    "MissingObject",
    "RetryError",
    "error_message",
    "is_of_plan",
]

LOGS = f"Run kubectl -n {HARVESTER_SYSTEM} logs -l app.kubernetes.io/name={MANAGER} --prefix --tail=-1"


class MissingObject(RetryError):
    """A user has to create the object."""


class ForeignObject(RetryError):
    """The object is neither adopted nor overwritten."""

    def __init__(self, message: str, *, found: Object) -> None:
        super().__init__(message)
        self.found = found


class BadCluster(RetryError):
    """Raised before any change."""


def is_of_plan(error: Exception) -> bool:
    """Return True for a write of the plan that is always refused, for example by a policy for the toolkit image."""
    return isinstance(error, Forbidden) and error.written is not None and error.written.kind == UPGRADE_PLANS.kind


def error_message(error: Exception) -> str:
    """Return the message for users; for an unexpected error, only its type and a reference to the log."""
    if isinstance(error, KubeError | RetryError):
        return str(error)
    return f"internal error ({type(error).__name__}), retrying. {LOGS}"
