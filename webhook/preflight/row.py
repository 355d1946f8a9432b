"""The result of a check as the command line prints it; gate.py makes the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.check import Finding, Outcome
from webhook.review import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.check import CheckResult

__all__ = ["FAILED", "SKIPPED", "UNKNOWN", "Finding", "Row", "printable"]

FAILED, SKIPPED, UNKNOWN = map(str, (Outcome.FAILED, Outcome.SKIPPED, Outcome.UNKNOWN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcome of a check, or why it was not made."""

    check: str
    outcome: str
    findings: Sequence[Finding] = ()
    #: The reason why the check was not made, or the check's warnings.
    reason: str = ""

    @classmethod
    def of(cls, result: CheckResult) -> Row:
        """Return the row of a check that was run."""
        return cls(
            check=result.name, outcome=result.outcome, findings=result.findings, reason=". ".join(result.warnings)
        )
