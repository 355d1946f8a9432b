"""What can be wrong with an upgrade without ending it.

    RetryError          the plan is Degraded with this sentence, and the step is tried again
    ├── MissingObject   something the step reads is not there, and nobody is about to make it
    ├── ForeignObject   an object under our name belongs to someone else
    ├── BadCluster      the cluster is in a state in which going on would do harm
    └── BadRepository   the upgrade repository does not answer, or answers nonsense

Whatever ends an upgrade is no exception but an outcome: `Failed` in phase.py.
"""

from __future__ import annotations

from upgrade_manager.runtime.result import RetryError

__all__ = ["BadCluster", "BadRepository", "ForeignObject", "MissingObject", "RetryError"]


class MissingObject(RetryError):
    """Raised where waiting for the object is not what the user expects."""


class ForeignObject(RetryError):
    """Raised before anything is adopted or overwritten."""


class BadCluster(RetryError):
    """Raised before anything is changed."""


class BadRepository(RetryError):
    """Raised for connection failures, HTTP errors and files that cannot be read as what they should be."""
