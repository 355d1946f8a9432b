"""Changes that remedies advise, in `status.advised`: what a user may have changed, and how it is given back.

pipeline/blocker_report.py records them with their blocker; pipeline/ending/advice.py names those that are left.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import Field

from upgrade_manager.api.model import NamedObject
from upgrade_manager.api.remedy import fitting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.api.remedy import Change

#: Entries in the status; later ones are not recorded.
MAX_ADVISED = 20


class AdvisedStatus(NamedObject, json_schema_extra={"required": ["kind", "name", "field", "original", "undo"]}):
    """A change that a remedy has advised."""

    field: str = Field(default="", description="Field that the command changes.")
    original: str = Field(default="", description="Value of the field before, as JSON.")
    undo: str = Field(default="", description="The command that gives the change back.")


def with_advised(recorded: object, blockers: Iterable[Blocker]) -> list[dict[str, Any]]:
    """Return the record with the changes that these blockers advise; the first original of a field stays."""
    entries = merged_advice([recorded])
    known = {_identity(entry) for entry in entries}
    for remedy in (one for blocker in blockers for one in fitting(blocker.remedies)):
        for change in remedy.changes:
            entry = _entry(change, remedy.undo)
            if _identity(entry) not in known and len(entries) < MAX_ADVISED:
                known.add(_identity(entry))
                entries.append(entry)
    return entries


def merged_advice(records: Iterable[object]) -> list[dict[str, Any]]:
    """Return the entries of several plans' records, of each field the first one."""
    entries = [one for record in records if isinstance(record, list) for one in record if isinstance(one, dict)]
    return list({_identity(entry): entry for entry in reversed(entries)}.values())[::-1][:MAX_ADVISED]


def _entry(change: Change, undo: str) -> dict[str, Any]:
    place = {"namespace": change.namespace} if change.namespace else {}
    original = json.dumps(change.original, separators=(",", ":"), sort_keys=True)
    return {
        "kind": change.kind,
        **place,
        "name": change.name,
        "field": change.field,
        "original": original,
        "undo": undo,
    }


def _identity(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(key) or "") for key in ("kind", "namespace", "name", "field"))
