"""An added point of pauseBefore holds every node whose Job has not begun; a warning names the others.

admission.py runs the check of an update; api/holds.py has the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.holds import late_holds
from upgrade_manager.kube import objects
from webhook.check import Check, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.check import Subject

FIELD = "spec.nodeUpgradeOption.pauseBefore"


def checks_of(*, new: object, old: object) -> Sequence[Check]:
    """Return the check of the points that the update adds; nothing without such points."""
    added = _points(new) - _points(old)

    async def find(_: Subject) -> list[Finding]:
        return [Finding(problem=text, denies=False) for text in late_holds(objects.mapping(old, "status"), added)]

    return [Check(name="pause before", field=FIELD, find=find)] if added else []


def _points(plan: object) -> set[str]:
    return {str(one) for one in objects.items(plan, "spec", "nodeUpgradeOption", "pauseBefore")}
