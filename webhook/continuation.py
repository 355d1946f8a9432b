"""The check of the entries by which users let nodes go on that hold; admission.py calls it for an update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.holds import read_entries, refusal
from upgrade_manager.api.keys import ANNOTATION_CONTINUE
from upgrade_manager.kube import objects
from webhook.check import Check, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.check import Subject

FIELD = f"metadata.annotations[{ANNOTATION_CONTINUE}]"


def checks_of(*, new: object, old: object) -> Sequence[Check]:
    """Return the check of the entries that the update adds; nothing without such entries."""
    known = _entries(old)
    added = [entry for entry in _entries(new) if entry not in known]

    async def find(_: Subject) -> Iterable[Finding]:
        problems = (refusal(objects.mapping(new, "status"), entry) for entry in added)
        return [Finding(problem=problem) for problem in problems if problem]

    return [Check(name="continue", field=FIELD, find=find)] if added else []


def _entries(plan: object) -> list[str]:
    return read_entries(objects.strings(plan, "metadata", "annotations").get(ANNOTATION_CONTINUE, ""))
