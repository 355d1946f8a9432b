"""The warnings for a user who deletes a failed plan: what it has left, and what remedies have advised to change.

mutation.py sends the warnings, because the validating webhook is not sent the deletions of plans that have ended: no
dead webhook may hold these up. pipeline/ending/passing_on.py names the same in events, as the cluster is then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.ledger import LedgerKind, of_kind, recorded_entries
from upgrade_manager.api.phases import FAILED
from upgrade_manager.api.text import namespaced_name, one_line
from upgrade_manager.kube import objects
from webhook.review import PLAN_KIND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.review import AdmissionRequest

#: An API server cuts longer ones, and drops those after 4096 characters.
_MAX_LENGTH, _MAX_WARNINGS = 250, 15
_LEFT = {
    LedgerKind.TAINT: "may keep the taint of its drain",
    LedgerKind.HOLD: "may be held back on nodes",
    LedgerKind.FILE: "may be left on nodes",
    LedgerKind.STOPPED_VM: "was stopped for the upgrade, and may be off",
}


def warnings_of(request: AdmissionRequest) -> list[str]:
    """Return the warnings about the deletion of a failed plan."""
    if request.operation != "DELETE" or request.kind != PLAN_KIND or request.subresource:
        return []
    status = objects.mapping(request.old, "status")
    found = list(_debts(status)) if objects.text(status, "currentPhase") == FAILED else []
    if not found:
        return []
    # The next steps have the commands.
    first = (
        "The failed upgrade has left what follows. Events of Cluster fleet-local/local have the commands; a retry or "
        "another UpgradePlan settles most of it"
    )
    left = len(found) - _MAX_WARNINGS
    more = [f"and {left} more, in status.ledger and status.advised"] if left > 0 else []
    return [first, *(one_line(text)[:_MAX_LENGTH] for text in found[:_MAX_WARNINGS]), *more]


def _debts(status: object) -> Iterator[str]:
    for entry in of_kind(recorded_entries(status), *_LEFT):
        yield f"{entry['object']} {_LEFT[LedgerKind(entry['kind'])]}"
    for entry in objects.items(status, "advised"):
        kind, namespace, name, field, undo = (
            objects.text(entry, key) for key in ("kind", "namespace", "name", "field", "undo")
        )
        advised = f"{kind} {namespaced_name(namespace, name)}: a remedy advised to change {field}"
        whole = f"{advised}. If you did, give it back: {undo}"
        # A command that is cut would be another one.
        yield (
            whole if len(one_line(whole)) <= _MAX_LENGTH else f"{advised}; its event has the command that gives it back"
        )
