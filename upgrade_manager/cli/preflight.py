"""The command `upgrade-manager preflight`: the webhook's checks of a new plan, run by hand."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import API_VERSION, KIND
from upgrade_manager.cli.api_server_check import ApiServerCheck, StartError
from upgrade_manager.cli.application import USER_AGENT
from upgrade_manager.cli.options import USAGE
from upgrade_manager.kube import fields
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.config import ConfigError
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.runtime.logging import LogFormat, configure_logging
from webhook.admission import is_skipped
from webhook.catalogue import CHECKS
from webhook.check import CheckResult, Finding, Subject
from webhook.cluster import LiveReader
from webhook.review import printable
from webhook.runner import run_checks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from upgrade_manager.cli.options import PreflightOptions
    from upgrade_manager.kube.objects import Object
    from webhook.check import Check

#: Seconds for all checks: no API server waits for them.
DEADLINE = 60.0
STANDARD_INPUT = "-"
SKIPPED = "skipped"
_FAILED = "failed"
_NEEDS_PLAN = "needs a plan. Use -f FILE"
_WEBHOOK_SKIPS = "The webhook skips all checks of this plan, because it has the annotation skip-webhook."
#: Exit status after Ctrl-C, as of a shell.
_INTERRUPTED = 130


class PlanError(Exception):
    """The file does not contain one UpgradePlan; the text is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcome of a check, or why it was skipped."""

    check: str
    outcome: str
    findings: Sequence[Finding] = ()
    reason: str = ""

    @classmethod
    def of(cls, result: CheckResult) -> Row:
        """Return the row of a check that was run."""
        return cls(check=result.name, outcome=result.outcome, findings=result.findings, reason=result.warning)


def preflight(options: PreflightOptions) -> int:
    """Check the cluster and the plan, print the results, and return the exit status."""
    # Until here these signals end the process silently, with status 0.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    configure_logging(level="error", log_format=LogFormat.CONSOLE, stream=sys.stderr, now=SystemClock().now)
    try:
        plan = read_plan(options.file) if options.file else {}
        rows = asyncio.run(_check(plan, options))
    except (PlanError, StartError, ConfigError) as error:
        sys.stderr.write(f"upgrade-manager: {error}\n")
        return USAGE if isinstance(error, PlanError) else 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  # such as a server's URL with an impossible port
        sys.stderr.write(f"upgrade-manager: preflight failed: {type(error).__name__}: {error}\n")
        return 1
    skips = is_skipped(plan)
    text = _json(plan, rows, skips=skips) if options.output == "json" else _table(rows, skips=skips)
    sys.stdout.write(text)
    return int(any(row.outcome == _FAILED for row in rows))


def read_plan(file: str) -> Object:
    """Read a plan from YAML or JSON. Raises PlanError."""
    # Imported late: the manager does not read manifests.
    import yaml  # noqa: PLC0415

    shown = "standard input" if file == STANDARD_INPUT else file
    try:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except OSError as error:
        raise PlanError(f"{shown}: {error.strerror}") from error
    # ValueError: not UTF-8, or a value such as a date that does not exist.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise PlanError(f"{shown}: not YAML: {reason}") from error
    if len(documents) != 1:
        raise PlanError(f"{shown}: {len(documents)} documents. Use a file with one {KIND}")
    [plan] = documents
    if fields.text(plan, "kind") != KIND or fields.text(plan, "apiVersion") != API_VERSION:
        raise PlanError(f"{shown}: not an {KIND} of {API_VERSION}")
    return dict(plan)


async def _check(plan: Object, options: PreflightOptions) -> list[Row]:
    """Run the checks, without a plan those that need none. Raises ConfigError and StartError."""
    config = await load_config(environ=os.environ, now=SystemClock().now, kubeconfig=options.kubeconfig)
    async with HttpTransport(config, on_response=lambda *_: None) as transport:
        client = Client(transport, user_agent=USER_AGENT, random=random.Random())
        if not await ApiServerCheck(client, server=config.server, random=random.Random()).attempt():
            raise StartError(f"API server {config.server} is not available")
        return await check(plan, client)


async def check(plan: Object, client: Client) -> list[Row]:
    """Run the checks of the catalogue; without a plan, those of its fields are skipped."""
    subject = Subject.of(plan, cluster=LiveReader(client))
    results = await run_checks([one for one in CHECKS if plan or not _needs_plan(one)], subject, deadline=DEADLINE)
    rows = {result.name: Row.of(result) for result in results}
    skipped = Row(check="", outcome=SKIPPED, reason=_NEEDS_PLAN)
    return [rows.get(one.name) or replace(skipped, check=one.name) for one in CHECKS]


def _needs_plan(check: Check) -> bool:
    """Return True for a check of fields of the plan; the others check the cluster."""
    return check.field != "spec"


def _table(rows: Sequence[Row], *, skips: bool) -> str:
    width = max(len(row.check) for row in rows) + 2
    lines = [f"{'CHECK':<{width}}{'RESULT':<9}DETAILS", *(line for row in rows for line in _lines(row, width))]
    failed = sum(row.outcome == _FAILED for row in rows)
    lines += ["", f"{failed} of {len(rows)} checks failed." if failed else "No check failed."]
    if skips:
        lines.append(_WEBHOOK_SKIPS)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _lines(row: Row, width: int) -> Iterator[str]:
    details = [printable(one.message) for one in row.findings] or [printable(row.reason)]
    for index, detail in enumerate(details):
        check, outcome = (row.check, row.outcome) if index == 0 else ("", "")
        yield f"{check:<{width}}{outcome:<9}{detail}"


def _json(plan: Object, rows: Sequence[Row], *, skips: bool) -> str:
    checks: list[dict[str, Any]] = [
        {
            "name": row.check,
            "outcome": row.outcome,
            "findings": [{"field": one.field, "message": one.message} for one in row.findings],
            "reason": row.reason,
        }
        for row in rows
    ]
    passed = all(row.outcome != _FAILED for row in rows)
    document = {"plan": fields.name(plan), "passed": passed, "skippedByWebhook": skips, "checks": checks}
    return json.dumps(document, indent=2) + "\n"
