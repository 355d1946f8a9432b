"""Runs checks concurrently, all before one deadline.

admission.py and preflight/gate.py call it with the checks of catalogue.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.errors import Forbidden, KubeError
from webhook.check import CannotRun, CheckResult, Finding, NotNeeded, Outcome
from webhook.cluster import NotInstalled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.check import Check, Subject

#: Seconds for all checks, which is less than the API server's time-out (timeoutSeconds).
DEADLINE = 8.0
_GRANT = "Grant the permission; the webhook gets its own by kubectl apply -k deploy"
log = structlog.get_logger(__name__)


def of_webhook(check: Check, error: Forbidden) -> str:
    """Return the message about a permission that the webhook lacks."""
    return _impossible(check, str(error), remedy=_GRANT).message


async def run_checks(
    checks: Sequence[Check],
    subject: Subject,
    *,
    deadline: float = DEADLINE,
    forbidden: Callable[[Check, Forbidden], str] = of_webhook,
) -> list[CheckResult]:
    """Run all checks to their end, or to the deadline, and return their results in order.

    A check that cannot be made fails, so that an unreadable cluster does not let a plan pass. `forbidden` returns
    the message about a permission that is missing.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_run(check, subject, deadline=deadline, forbidden=forbidden), name=check.name)
            for check in checks
        ]
    return [task.result() for task in tasks]


async def _run(
    check: Check, subject: Subject, *, deadline: float, forbidden: Callable[[Check, Forbidden], str]
) -> CheckResult:
    began = loop_time()
    findings: list[Finding] = []
    try:
        async with asyncio.timeout(deadline):
            findings = list(await check.find(subject))
    except NotInstalled as missing:
        text = f"check {check.name!r} skipped: the cluster does not serve {missing}"
        findings = [Finding(problem=text, denies=False)]
    except (CannotRun, NotNeeded) as reason:
        outcome = Outcome.UNKNOWN if isinstance(reason, CannotRun) else Outcome.SKIPPED
        return CheckResult(name=check.name, outcome=outcome, seconds=loop_time() - began, warnings=(str(reason),))
    except TimeoutError:
        findings = [_impossible(check, f"the cluster was not read within {deadline:.0f} s")]
    except Forbidden as error:
        findings = [Finding(problem=forbidden(check, error))]
    except KubeError as error:
        findings = [_impossible(check, str(error))]
    except Exception:  # an error in one check must not hide what the others find
        log.exception("check failed unexpectedly", check=check.name)
        findings = [_impossible(check, "internal error, see the log of the webhook")]
    return _result(check, findings, seconds=loop_time() - began)


def _result(check: Check, findings: Sequence[Finding], *, seconds: float) -> CheckResult:
    denials = [one for one in findings if one.denies]
    outcome = Outcome.FAILED if denials else Outcome.WARNING if findings else Outcome.PASSED
    return CheckResult(
        name=check.name,
        outcome=outcome,
        seconds=seconds,
        findings=tuple(replace(one, field=one.field or check.field) for one in denials),
        warnings=tuple(one.message for one in findings if not one.denies),
    )


def _impossible(check: Check, reason: str, *, remedy: str = "Try again") -> Finding:
    return Finding(problem=f"check {check.name!r} cannot be made: {reason}. {remedy}")
