"""Errors of the upgrade repository, which are retried; the pipeline's errors are in pipeline/errors.py.

BadRepository       the upgrade repository returns errors or invalid files
└── Unreachable     it does not respond, or is overloaded
"""

from __future__ import annotations

from upgrade_manager.runtime.result import RetryError

#: The reason of a file that is missing, or cannot be parsed.
NOT_A_RELEASE = "the ISO is corrupt or not a Harvester release"


class BadRepository(RetryError):
    """An HTTP error, or a file that cannot be parsed."""


class Unreachable(BadRepository):
    """A connection failure, or a response that asks for a retry; expected while the repository starts."""
