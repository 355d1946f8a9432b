"""`node survey`: looks for what would make a node's upgrade fail, and changes nothing.

It succeeds whatever it finds: the system-upgrade-controller would repeat a failed Job a hundred times. The findings are
the termination message, which the manager reads in ImagePreload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.run.steps import Step
from upgrade_manager.toolkit.survey.checks import survey

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def report(context: ToolkitContext) -> None:
    """Make all checks, and report the findings. Raises StepFailed if the report cannot be written."""
    context.report((await survey(context)).encode())


STEPS = (Step(name="survey", timeout=28, act=report),)
