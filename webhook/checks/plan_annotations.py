"""The annotations that users set have valid values; a key that the manager does not know is a warning.

api/annotations.py has the rule. Initialize applies it again, to plans that no webhook has checked; toolkit_image.py
checks the two annotations about the toolkit image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.check import Check, Finding

if TYPE_CHECKING:
    from webhook.check import Subject

FIELD = "metadata.annotations"


async def _find(subject: Subject) -> list[Finding]:
    annotations = subject.annotations
    invalid = [*annotations.invalid, *annotations.without_effect]
    denials = [Finding(problem=str(one), field=f"{FIELD}[{one.key}]") for one in invalid]
    return [*denials, *(Finding(problem=text, denies=False) for text in annotations.unknown_messages.values())]


CHECK = Check(name="annotations", field=FIELD, find=_find)
