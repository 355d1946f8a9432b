"""The log line of a request: the user, the change, the plan, and the waived checks. `server` logs these fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.annotations import WAIVER_ANNOTATIONS
from upgrade_manager.api.spec import MAX_OBJECT_NAME
from upgrade_manager.kube import objects
from webhook.review import UPGRADE_KIND, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.review import AdmissionRequest

#: Bytes of a name in a line.
_MAX_NAME = 128


def description(request: AdmissionRequest) -> dict[str, str | int]:
    """Return the fields of the request's log lines."""
    described: dict[str, str | int] = {
        "operation": printable(request.operation, limit=_MAX_NAME),
        "upgrade" if request.kind == UPGRADE_KIND else "plan": printable(request.name, limit=MAX_OBJECT_NAME),
        "user": printable(request.user.name, limit=_MAX_NAME),
        "user_uid": printable(request.user.uid, limit=_MAX_NAME),
        "groups": request.user.groups,
    }
    return described | ({"dry_run": True} if request.dry_run else {})


def waivers(request: AdmissionRequest) -> Sequence[str]:
    """Return the waivers that the request sets, changes or removes, by the last part of their names."""
    changed = [
        key.rpartition("/")[2] for key in WAIVER_ANNOTATIONS if _value(request.new, key) != _value(request.old, key)
    ]
    is_forced, was_forced = (objects.is_true(plan, "spec", "force") for plan in (request.new, request.old))
    return [*changed, *(["spec.force"] if is_forced != was_forced else [])]


def _value(plan: object, key: str) -> str | None:
    return objects.strings(plan, "metadata", "annotations").get(key)
