"""The toolkit of the plan can do what the plan requests for VMs whose migration fails.

api/migration_failure.py has the rule. Initialize applies it again, to plans that no webhook has checked; admission.py
runs the check of an update by `of_update`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.migration_failure import FIELD, OnMigrationFailure, refusal
from upgrade_manager.api.phases import FAILED
from upgrade_manager.api.toolkit_image import ToolkitChoice, decide
from upgrade_manager.kube import objects
from webhook.check import Check, Finding

if TYPE_CHECKING:
    from webhook.check import Subject


def requests_wait(plan: object) -> bool:
    """Return True for a plan that requests what not every toolkit can do."""
    value = objects.text(plan, "spec", "nodeUpgradeOption", "onMigrationFailure")
    return value == OnMigrationFailure.WAIT


def of_update(old: object) -> Check:
    """Return the check of an update: the recorded toolkit stays until a plan that has failed is resumed."""
    status = objects.mapping(old, "status")
    recorded = objects.text(status, "toolkitImage", "kind")

    async def find(subject: Subject) -> list[Finding]:
        return _findings(subject, recorded)

    return CHECK if objects.text(status, "currentPhase") == FAILED or not recorded else replace(CHECK, find=find)


async def _find(subject: Subject) -> list[Finding]:
    decision = decide(subject.spec, subject.annotations, subject.toolkit)
    # The check of the toolkit image names the reason for which there is none.
    return _findings(subject, decision.kind) if isinstance(decision, ToolkitChoice) else []


def _findings(subject: Subject, kind: str) -> list[Finding]:
    problem = refusal(subject.spec.node_upgrade_option.on_migration_failure, kind=kind)
    return [Finding(problem=problem)] if problem else []


CHECK = Check(name="VM migration", field=FIELD, find=_find)
