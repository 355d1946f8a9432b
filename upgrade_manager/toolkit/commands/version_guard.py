"""`version-guard`: checks that Harvester supports the upgrade, by the rules of the manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.release.version import check_eligibility
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def check(context: ToolkitContext) -> None:
    """Raise StepFailed for an upgrade that Harvester does not support, unless spec.force is set."""
    try:
        plan = await context.client.get(UPGRADE_PLANS, context.plan)
    except Forbidden as error:
        raise StepFailed(
            f"the service account of this Pod may not read UpgradePlan {context.plan}. Allow it `get` on "
            "upgradeplans.management.harvesterhci.io"
        ) from error
    if objects.spec(plan).get("force"):
        return
    release = objects.status(plan).get("releaseMetadata") or {}
    current, target = objects.status(plan).get("previousVersion") or "", release.get("harvester") or ""
    refusal = check_eligibility(current, target, release.get("minUpgradableVersion") or "")
    if refusal is not None:
        raise StepFailed(f"upgrade from {current or 'an unknown version'} to {target} is not allowed: {refusal}")


STEPS = (Step(name="check-version", timeout=300, act=check),)
