"""The hold before the reboot, which a plan with pauseBefore Reboot requires.

The commands post_drain and single_node_upgrade run it once the new system is written and checked. The manager sees the
step, records the user's continuation in the plan, and this command reads it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.holds import HOLD_STEP, HoldPoint, continue_command, continued, entry_of
from upgrade_manager.kube import objects
from upgrade_manager.toolkit.os.os_release import runs_release
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.own_plan import wanted_plan
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def reboot_held(context: ToolkitContext) -> str:
    """Return the command that lets the node go on; empty if it does not hold. Raises StepFailed without the plan."""
    if not context.holds or await runs_release(context):
        return ""
    plan = await wanted_plan(context)
    if plan is None:
        text = f"UpgradePlan {context.plan} was deleted while node {context.node} held before its reboot"
        raise StepFailed(f"{text}. The new system is installed: reboot the node when it suits")
    points = objects.items(plan, "spec", "nodeUpgradeOption", "pauseBefore")
    if HoldPoint.REBOOT not in points or entry_of(context.node, HoldPoint.REBOOT) in continued(objects.status(plan)):
        return ""
    return f"the reboot waits for: {continue_command(context.plan, context.node)}"


HOLD_BEFORE_REBOOT = Step(name=HOLD_STEP, timeout=None, missing=reboot_held, poll=10.0)
