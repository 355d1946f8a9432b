"""A check of a node, and the texts of its findings; checks.py has the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from upgrade_manager.toolkit.run.context import ToolkitContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One reason for which the upgrade of a node would fail."""

    #: Constant; the manager's message has it.
    id: str
    #: Returns sentences for users, without the node's name. Raises StepFailed or OSError if the check is not possible.
    find: Callable[[ToolkitContext], Awaitable[Sequence[str]]]


def sentence(text: str) -> str:
    """Return a clause as a sentence."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
