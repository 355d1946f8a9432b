"""The output of `upgrade-manager preflight`, as a table and as JSON; preflight.py prints it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.text import name_list
from upgrade_manager.cli.check_table import Entry, table_lines
from upgrade_manager.display.remedies import remedy_lines, shown
from upgrade_manager.kube import objects
from webhook.preflight.row import SKIPPED, printable

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from webhook.preflight.gate import Report
    from webhook.preflight.row import Finding, Row

_WEBHOOK_SKIPS = "The webhook skips all checks of this plan, because it has the annotation skip-webhook."


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightView:
    """The facts of one run."""

    context: str
    server: str
    plan: Object
    #: The toolkit image that the plan gets; empty without a plan, or if it gets none.
    image: str
    #: The treatment of VMs whose migration fails; empty as well.
    on_migration_failure: str
    report: Report

    @property
    def target(self) -> str:
        """The release or the image that the plan names; empty without a plan."""
        version, image = (objects.text(self.plan, "spec", key) for key in ("version", "image"))
        return f"image {image}" if image else version

    def table(self, *, width: int | None) -> str:
        """Return the lines for a terminal of that width, or for a pipe; a command stands alone on its line."""
        rows, bind = self.report.rows, self.report.bind
        first = head(context=self.context, server=self.server, running=self.report.running, target=self.target)
        lines = [first, "", *table_lines([_entry(row) for row in rows], width=width)]
        facts = (("Toolkit image", self.image), ("Stuck VMs", self.on_migration_failure))
        lines += ["", *(f"{label}: {printable(fact)}." for label, fact in facts if fact)]
        lines += [self._summary()]
        lines += [_WEBHOOK_SKIPS] if self.report.is_skipped else []
        lines += ["", "An administrator gives you the missing permissions:", *bind] if bind else []
        return "\n".join(lines) + "\n"

    def _summary(self) -> str:
        rows, failed, unknown = self.report.rows, self.report.failed, self.report.unknown
        skipped = sum(row.outcome == SKIPPED for row in rows)
        first = f"{failed} of {len(rows)} checks failed" if failed else "No check failed"
        first = f"{first}, {skipped} skipped." if skipped else f"{first}."
        return f"{first} Not made, so that the plan may still be refused: {name_list(unknown)}." if unknown else first

    def document(self) -> str:
        """Return the same facts as JSON."""
        facts = {
            "context": self.context,
            "server": self.server,
            "runningVersion": self.report.running,
            "target": self.target,
            "plan": objects.name(self.plan),
            "passed": self.report.passed,
            "notMade": self.report.unknown,
            "skippedByWebhook": self.report.is_skipped,
            "toolkitImage": self.image,
            "onMigrationFailure": self.on_migration_failure,
            "bindCommands": list(self.report.bind),
        }
        return json.dumps({**facts, "checks": [_document(row) for row in self.report.rows]}, indent=2) + "\n"


def head(*, context: str, server: str, running: str, target: str) -> str:
    """Return the first line: the cluster, the release that runs, and the target if there is one."""
    where = f"Context {context}" if context else "Service account"
    runs = f"runs {running}" if running else "running version unknown"
    return printable(f"{where}, server {server}, {runs}{f', target {target}' if target else ''}")


def _entry(row: Row) -> Entry:
    details = [printable(one.problem) for one in row.findings] or [printable(row.reason)]
    remedies = [_remedies(row.check, one) for one in row.findings if one.remedies]
    return Entry(name=row.check, outcome=row.outcome, details=details, remedies=remedies)


def _remedies(check: str, finding: Finding) -> list[str]:
    return [f"# {check}: {printable(finding.problem)}", *remedy_lines(shown(finding.remedies))]


def _document(row: Row) -> dict[str, Any]:
    return {
        "name": row.check,
        "outcome": row.outcome,
        "findings": [
            {
                "field": one.field,
                "message": one.problem,
                "remedies": [remedy.entry() for remedy in shown(one.remedies)],
            }
            for one in row.findings
        ],
        "reason": row.reason,
    }
