"""The command `upgrade-manager preflight`: the webhook's checks of a new plan, run by hand.

user_commands.py starts it.

webhook/preflight.py runs them; this module reads the plan and prints the results.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.annotations import PlanAnnotations
from upgrade_manager.api.keys import API_VERSION, KIND
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.api.toolkit_image import ToolkitChoice, decide
from upgrade_manager.cli.options import USAGE
from upgrade_manager.cli.session import CommandError, connected, run_command
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS
from webhook.preflight import FAILED, check, is_skipped, printable

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Sequence

    from upgrade_manager.api.toolkit_image import ToolkitConfig
    from upgrade_manager.cli.user_options import PreflightOptions
    from upgrade_manager.kube.objects import Object
    from webhook.preflight import Row

STANDARD_INPUT = "-"
_WEBHOOK_SKIPS = "The webhook skips all checks of this plan, because it has the annotation skip-webhook."


def preflight(options: PreflightOptions) -> int:
    """Check the cluster and the plan, print the results, and return the exit status."""

    def work() -> Coroutine[Any, Any, int]:
        # Before the event loop, so that Ctrl-C ends a wait for standard input.
        plan = read_plan(options.file) if options.file else {}
        return _preflight(plan, options)

    return run_command("preflight", work)


async def _preflight(plan: Object, options: PreflightOptions) -> int:
    async with connected(command="preflight", kubeconfig=options.kubeconfig, context=options.context) as session:
        await session.read(session.client.raw("GET", UPGRADE_PLANS.path(), query=(("limit", "1"),)))
        rows = await check(plan, session.client, options.toolkit)
    skips, image = is_skipped(plan), _toolkit_image(plan, options.toolkit)
    is_json = options.output == "json"
    sys.stdout.write(_json(plan, rows, skips=skips, image=image) if is_json else _table(rows, skips=skips, image=image))
    return int(any(row.outcome == FAILED for row in rows))


def read_plan(file: str) -> Object:
    """Read a plan from YAML or JSON. Raises CommandError."""
    # Imported late: the manager does not read manifests.
    import yaml  # noqa: PLC0415

    shown = "standard input" if file == STANDARD_INPUT else file
    try:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except OSError as error:
        raise CommandError(f"{shown}: {error.strerror}", status=USAGE) from error
    # ValueError: not UTF-8, or a value such as a date that does not exist.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise CommandError(f"{shown}: not YAML: {reason}", status=USAGE) from error
    if len(documents) != 1:
        raise CommandError(f"{shown}: {len(documents)} documents. Use a file with one {KIND}", status=USAGE)
    [plan] = documents
    if objects.text(plan, "kind") != KIND or objects.text(plan, "apiVersion") != API_VERSION:
        raise CommandError(f"{shown}: not an {KIND} of {API_VERSION}", status=USAGE)
    return dict(plan)


def _toolkit_image(plan: Object, toolkit: ToolkitConfig) -> str:
    """Return the toolkit image that the plan gets, for a line; empty without a plan, or if it gets none."""
    spec = UpgradePlanSpec.read(objects.mapping(plan, "spec"))
    choice = decide(spec, PlanAnnotations(objects.strings(plan, "metadata", "annotations")), toolkit)
    return choice.summary if plan and isinstance(choice, ToolkitChoice) else ""


def _table(rows: Sequence[Row], *, skips: bool, image: str) -> str:
    width = max(len(row.check) for row in rows) + 2
    lines = [f"{'CHECK':<{width}}{'RESULT':<9}DETAILS", *(line for row in rows for line in _lines(row, width))]
    failed = sum(row.outcome == FAILED for row in rows)
    lines += ["", *([f"Toolkit image: {image}."] if image else [])]
    lines += [f"{failed} of {len(rows)} checks failed." if failed else "No check failed."]
    if skips:
        lines.append(_WEBHOOK_SKIPS)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _lines(row: Row, width: int) -> Iterator[str]:
    details = [printable(one.message) for one in row.findings] or [printable(row.reason)]
    for index, detail in enumerate(details):
        check, outcome = (row.check, row.outcome) if index == 0 else ("", "")
        yield f"{check:<{width}}{outcome:<9}{detail}"


def _json(plan: Object, rows: Sequence[Row], *, skips: bool, image: str) -> str:
    checks: list[dict[str, Any]] = [
        {
            "name": row.check,
            "outcome": row.outcome,
            "findings": [{"field": one.field, "message": one.message} for one in row.findings],
            "reason": row.reason,
        }
        for row in rows
    ]
    passed = all(row.outcome != FAILED for row in rows)
    head = {"plan": objects.name(plan), "passed": passed, "skippedByWebhook": skips, "toolkitImage": image}
    return json.dumps({**head, "checks": checks}, indent=2) + "\n"
