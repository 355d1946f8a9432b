"""Checks that a probe asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Unhealthy(Exception):
    """Why a check fails, as a sentence for the log and the check's own sub-path."""


#: Returns when all is well, raises otherwise.
Check: TypeAlias = "Callable[[], Awaitable[None]]"
