"""The treatment of VMs that could leave a node and do not: `spec.nodeUpgradeOption.onMigrationFailure`.

The Jobs of our toolkit act by `policy`, and report values of VMs that are not valid (toolkit/vms/stop_policy.py). The
webhook and Initialize refuse by `refusal` what Harvester's toolkit cannot do, and `status` and `preflight` show
`summary`.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_ON_MIGRATION_FAILURE, ANNOTATION_TOOLKIT_KIND, ToolkitKind

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELD = "spec.nodeUpgradeOption.onMigrationFailure"


class OnMigrationFailure(StrEnum):
    """The treatment of a VM whose migration from a node has failed before the node's drain."""

    #: The upgrade waits until a user has migrated or stopped the VM.
    WAIT = "Wait"
    #: The upgrade stops the VM.
    STOP = "Stop"


_POLICIES = {str(one): one for one in OnMigrationFailure}
#: The policies, for a sentence with "neither".
VALUES = " nor ".join(OnMigrationFailure)
#: Characters of an invalid value that are shown.
MAX_SHOWN = 40
#: VMs that a Job reports, and characters of a report that is read: more than report_of writes.
_MAX_REPORTED, _MAX_REPORT = 50, 2**16
_HARVESTERS = "Harvester's toolkit (kind harvester)"


def read_policy(value: object) -> OnMigrationFailure | None:
    """Return the policy that a field or an annotation names; None for another value."""
    return _POLICIES.get(value) if isinstance(value, str) else None


def policy(requested: object, *, kind: str) -> OnMigrationFailure:
    """Return the policy of a plan whose Jobs run a toolkit of that kind; `requested` is the field's value.

    A kind that is not known stops nothing by default: our toolkit asks, and no user has named Harvester's.
    """
    if kind == ToolkitKind.HARVESTER:
        return OnMigrationFailure.STOP
    return read_policy(requested) or OnMigrationFailure.WAIT


def refusal(requested: object, *, kind: str) -> str:
    """Return why a toolkit of that kind cannot do what the field requests, and what to do; empty if it can."""
    if read_policy(requested) is not OnMigrationFailure.WAIT or kind != ToolkitKind.HARVESTER:
        return ""
    return (
        f"{FIELD} is {OnMigrationFailure.WAIT}, and {_HARVESTERS} cannot wait: it stops each VM whose migration fails. "
        f"Set it to {OnMigrationFailure.STOP} or remove it, or create a plan with the manager's own toolkit "
        f"(annotation {ANNOTATION_TOOLKIT_KIND}: {ToolkitKind.OWN}, or the manager's --toolkit-kind {ToolkitKind.OWN})"
    )


def summary(requested: object, *, kind: str) -> str:
    """Return the policy that holds, what it does, and where it comes from, for a line."""
    holds = policy(requested, kind=kind)
    what = {
        OnMigrationFailure.WAIT: "a VM whose migration fails is left to you",
        OnMigrationFailure.STOP: "a VM whose migration fails is stopped",
    }[holds]
    if kind == ToolkitKind.HARVESTER:
        return f"{holds}: {what}, as {_HARVESTERS} does"
    return f"{holds}: {what}" + (", by default" if read_policy(requested) is None else "")


def report_of(values: Mapping[str, str]) -> str:
    """Return the text by which a Job reports invalid values of VMs; empty without any."""
    shown = {name: values[name][:MAX_SHOWN] for name in sorted(values)[:_MAX_REPORTED]}
    return json.dumps(shown, separators=(",", ":")) if shown else ""


def read_report(text: str) -> dict[str, str]:
    """Return the invalid values in that text, by the VMs' names; nothing of another text."""
    if not text or len(text) > _MAX_REPORT:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {name: value[:MAX_SHOWN] for name, value in entries if isinstance(value, str)}


def invalid(value: str) -> str:
    """Return what an invalid value of a VM's annotation means."""
    key = ANNOTATION_ON_MIGRATION_FAILURE
    return f"its annotation {key} is {value!r}, which is neither {VALUES}, so that the upgrade does not stop it"
