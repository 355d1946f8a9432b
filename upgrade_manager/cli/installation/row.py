"""The result of one check of the installation; cli/check.py prints it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The result in a word."""

    PASSED = "passed"
    FAILED = "failed"
    #: It does not apply to this installation, or the user may not read what it needs.
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result of a check."""

    name: str
    outcome: Outcome
    #: The findings, in whole sentences; may be empty.
    reason: str
    #: Commands to paste, each for a separate line.
    commands: tuple[str, ...]


def passed(name: str, reason: str = "") -> Row:
    """Return the row of a part that works."""
    return Row(name=name, outcome=Outcome.PASSED, reason=reason, commands=())


def failed(name: str, reason: str, *commands: str) -> Row:
    """Return the row of a part that does not work, with commands to paste."""
    return Row(name=name, outcome=Outcome.FAILED, reason=reason, commands=commands)


def skipped(name: str, reason: str, *commands: str) -> Row:
    """Return the row of a part that was not checked."""
    return Row(name=name, outcome=Outcome.SKIPPED, reason=reason, commands=commands)
