"""The output of `upgrade-manager preflight`, as a table and as JSON; preflight.py prints it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects
from webhook.preflight.row import FAILED, SKIPPED, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object
    from webhook.preflight.gate import Report
    from webhook.preflight.row import Row

_WEBHOOK_SKIPS = "The webhook skips all checks of this plan, because it has the annotation skip-webhook."


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightView:
    """The facts of one run."""

    context: str
    server: str
    plan: Object
    #: The toolkit image that the plan gets; empty without a plan, or if it gets none.
    image: str
    report: Report

    @property
    def target(self) -> str:
        """The release or the image that the plan names; empty without a plan."""
        version, image = (objects.text(self.plan, "spec", key) for key in ("version", "image"))
        return f"image {image}" if image else version

    def table(self) -> str:
        """Return the lines for a terminal; a command stands alone on its line."""
        rows, bind = self.report.rows, self.report.bind
        width = max(len(row.check) for row in rows) + 2
        first = head(context=self.context, server=self.server, running=self.report.running, target=self.target)
        lines = [first, "", f"{'CHECK':<{width}}{'RESULT':<9}DETAILS"]
        lines += [line for row in rows for line in _lines(row, width)]
        lines += ["", *([f"Toolkit image: {printable(self.image)}."] if self.image else [])]
        lines += [self._summary()]
        lines += [_WEBHOOK_SKIPS] if self.report.is_skipped else []
        lines += ["", "An administrator gives you the missing permissions:", bind] if bind else []
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def _summary(self) -> str:
        rows = self.report.rows
        failed, skipped = (sum(row.outcome == outcome for row in rows) for outcome in (FAILED, SKIPPED))
        first = f"{failed} of {len(rows)} checks failed" if failed else "No check failed"
        return f"{first}, {skipped} skipped." if skipped else f"{first}."

    def document(self) -> str:
        """Return the same facts as JSON."""
        facts = {
            "context": self.context,
            "server": self.server,
            "runningVersion": self.report.running,
            "target": self.target,
            "plan": objects.name(self.plan),
            "passed": self.report.passed,
            "skippedByWebhook": self.report.is_skipped,
            "toolkitImage": self.image,
            "bindCommand": self.report.bind,
        }
        return json.dumps({**facts, "checks": [_entry(row) for row in self.report.rows]}, indent=2) + "\n"


def head(*, context: str, server: str, running: str, target: str) -> str:
    """Return the first line: the cluster, the release that runs, and the target if there is one."""
    where = f"Context {context}" if context else "Service account"
    runs = f"runs {running}" if running else "running version unknown"
    return printable(f"{where}, server {server}, {runs}{f', target {target}' if target else ''}")


def _lines(row: Row, width: int) -> Iterator[str]:
    details = [printable(one.message) for one in row.findings] or [printable(row.reason)]
    for index, detail in enumerate(details):
        check, outcome = (row.check, row.outcome) if index == 0 else ("", "")
        yield f"{check:<{width}}{outcome:<9}{detail}"


def _entry(row: Row) -> dict[str, Any]:
    return {
        "name": row.check,
        "outcome": row.outcome,
        "findings": [{"field": one.field, "message": one.message} for one in row.findings],
        "reason": row.reason,
    }
