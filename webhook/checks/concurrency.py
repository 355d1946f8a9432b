"""No other plan is in progress.

A plan that has failed may still restore settings; the new plan waits for it (`reconciler`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.in_progress import is_in_progress, wait_command
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.listings import PLANS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    plans = await subject.cluster.list(PLANS)
    return running(plan for plan in plans if objects.name(plan) != subject.name)


def running(plans: Iterable[Object]) -> list[Finding]:
    """Return a finding for each plan that runs, or cleans up; ../builtin.py denies Harvester's own upgrade by it."""
    return [finding for plan in plans if (finding := _finding(plan))]


def _finding(plan: Object) -> Finding | None:
    name, status = objects.name(plan), objects.mapping(plan, "status")
    if not is_in_progress(status):
        return None
    phase = objects.text(status, "currentPhase") or "unknown"
    wait = Remedy("Wait until it has ended", command=wait_command(name))
    return Finding(problem=f"UpgradePlan {name} is in progress (phase {phase})", remedies=(wait,))


CHECK = Check(name="concurrency", field="spec", find=_find)
