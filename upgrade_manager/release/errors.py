"""Errors of the upgrade repository, which are retried; the pipeline's errors are in pipeline/errors.py.

BadRepository       the upgrade repository returns errors or invalid files
└── Unreachable     it does not respond
"""

from __future__ import annotations

from upgrade_manager.runtime.result import RetryError


class BadRepository(RetryError):
    """An HTTP error, or a file that cannot be parsed."""


class Unreachable(BadRepository):
    """A connection failure; expected while the repository starts."""
