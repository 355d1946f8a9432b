"""Runs the checks of the catalogue outside a review; the command `upgrade-manager preflight` calls it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from webhook.admission import is_skipped
from webhook.catalogue import CHECKS
from webhook.check import CheckResult, Finding, Subject
from webhook.cluster import LiveReader
from webhook.review import printable
from webhook.runner import run_checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.api.toolkit_image import ToolkitConfig
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from webhook.check import Check

__all__ = ["FAILED", "SKIPPED", "Row", "check", "is_skipped", "printable"]

#: Seconds for all checks, for which no API server waits.
DEADLINE = 60.0
FAILED, SKIPPED = "failed", "skipped"
_NEEDS_PLAN = "needs a plan. Use -f FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcome of a check, or why it was skipped."""

    check: str
    outcome: str
    findings: Sequence[Finding] = ()
    #: The reason why the check was skipped, or the check's warnings.
    reason: str = ""

    @classmethod
    def of(cls, result: CheckResult) -> Row:
        """Return the row of a check that was run."""
        return cls(
            check=result.name, outcome=result.outcome, findings=result.findings, reason=". ".join(result.warnings)
        )


async def check(plan: Object, client: Client, toolkit: ToolkitConfig) -> list[Row]:
    """Run the checks of the catalogue; without a plan, skip the checks of a plan's fields."""
    subject = Subject.of(plan, cluster=LiveReader(client), toolkit=toolkit)
    results = await run_checks([one for one in CHECKS if plan or not _needs_plan(one)], subject, deadline=DEADLINE)
    rows = {result.name: Row.of(result) for result in results}
    skipped = Row(check="", outcome=SKIPPED, reason=_NEEDS_PLAN)
    return [rows.get(one.name) or replace(skipped, check=one.name) for one in CHECKS]


def _needs_plan(check: Check) -> bool:
    """Return True for a check of fields of the plan; all other checks read the cluster."""
    return check.field != "spec"
