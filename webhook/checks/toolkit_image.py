"""The plan's annotations name a toolkit image that the manager allows; what is guessed or ignored is a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.toolkit_image import ToolkitRefusal, decide
from webhook.check import Check, Finding

if TYPE_CHECKING:
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    decision = decide(subject.spec, subject.annotations, subject.toolkit)
    if isinstance(decision, ToolkitRefusal):
        return [Finding(problem=one.message, field=one.field) for one in decision.problems]
    return [Finding(problem=remark, denies=False) for remark in decision.remarks]


CHECK = Check(name="toolkit image", field="metadata.annotations", find=_find)
