"""The room for the names of the node's NICs in GRUB's file, which os/kernel_arguments.py writes.

checks.py lists the check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.os.kernel_arguments import planned_block
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.survey.finding import sentence
from upgrade_manager.toolkit.survey.room import is_upgraded

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def boot_arguments(context: ToolkitContext) -> list[str]:
    """Find a file of GRUB that has no room, or that the upgrade cannot change."""
    if await is_upgraded(context):
        return []
    try:
        planned_block(context.tree, node="")
    except StepFailed as error:
        return [sentence(str(error))]
    return []
