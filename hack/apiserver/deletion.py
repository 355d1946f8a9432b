"""Delete options, and the state of an object after a delete request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hack.apiserver.bodies import delete_options_body
from hack.apiserver.metadata import tidy
from hack.apiserver.schema.decoding import DecodingError, decode
from hack.apiserver.schema.field_error import UNOFFERED, forbidden, not_supported, required
from hack.apiserver.schema.go_types import delete_options_type
from hack.apiserver.status import bad_request, conflict, invalid_options
from hack.apiserver.stored import stamped
from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row
    from hack.apiserver.schema.field_error import FieldError
    from hack.apiserver.storage import Storage
    from hack.apiserver.stored import Stored
    from upgrade_manager.kube.transport import Request

_POLICIES = ("Foreground", "Background")
#: The finalizer that the garbage collector handles.
FOREGROUND = "foregroundDeletion"
#: The grace period of a running Pod in seconds, if neither it nor the request sets one.
DEFAULT_GRACE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """DeleteOptions, from the body or the query."""

    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


def delete_options(request: Request, row: Row) -> DeleteOptions:
    """Parse the options. Raises StatusError 400, 415 or 422."""
    try:
        given = decode(delete_options_body(request), delete_options_type(), unknown=[])
    except DecodingError as error:
        raise bad_request(str(error)) from error
    errors = [*_option_errors(request, row, given), *dry_run_errors(given.get("dryRun") or [])]
    if errors:
        raise invalid_options("DeleteOptions", errors)
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        propagation=str(given.get("propagationPolicy") or ""),
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        grace_seconds=given.get("gracePeriodSeconds"),
        dry_run=bool(given.get("dryRun")),
    )


def _option_errors(request: Request, row: Row, given: Object) -> Iterator[FieldError]:
    """Yield the errors of options that are not offered: those in the query, and all that orphan dependents."""
    for name in sorted(
        {name for name, _ in request.query} & {"gracePeriodSeconds", "orphanDependents", "propagationPolicy"}
    ):
        yield forbidden(name, f"in the query it is {UNOFFERED}")
    if given.get("orphanDependents") is not None:
        yield forbidden("orphanDependents", UNOFFERED)
    propagation = given.get("propagationPolicy") or ""
    if propagation not in {"", *_POLICIES}:
        yield not_supported("propagationPolicy", propagation, _POLICIES)
    elif not propagation and row.orphan_by_default:
        yield required("propagationPolicy", f"without it dependents are orphaned, which is {UNOFFERED}")


def dry_run_errors(given: list[str]) -> list[FieldError]:
    """Return errors of a dryRun parameter."""
    return [not_supported("dryRun", given, ("All",))] if any(value != "All" for value in given) else []


def check_preconditions(row: Row, obj: Object, options: DeleteOptions) -> None:
    """Check the preconditions uid and resourceVersion. Raises StatusError 409."""
    metadata = obj["metadata"]
    # This message names the kind; all others name the plural.
    resource = replace(row.resource, plural=row.resource.kind)
    if options.uid and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(resource, metadata["name"], why)
    version = metadata["resourceVersion"]
    if options.resource_version and options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified"
        )
        raise conflict(resource, metadata["name"], why)


def mark_deleted(row: Row, obj: Object, options: DeleteOptions, *, now: datetime) -> tuple[Object, bool]:
    """Return the object with its deletion recorded, and whether finalizers or a grace period hold it."""
    metadata = obj["metadata"]
    finalizers = _finalizers(metadata.get("finalizers", []), options.propagation)
    grace = _grace(row, obj, options)
    marked = metadata | {"finalizers": finalizers}
    if "deletionTimestamp" not in metadata:
        marked["deletionTimestamp"] = format_time(now + timedelta(seconds=grace))
        if metadata.get("generation"):
            marked["generation"] = metadata["generation"] + 1
    if grace <= metadata.get("deletionGracePeriodSeconds", grace) and not _contents(obj):
        marked["deletionGracePeriodSeconds"] = grace
    doomed = obj | {"metadata": tidy(marked)}
    if _contents(obj):
        doomed["status"] = obj.get("status", {}) | {"phase": "Terminating"}
    return doomed, bool(finalizers or grace or _contents(obj))


def finished(obj: Object) -> bool:
    """Return whether an update removed the last finalizer of an object that is being deleted."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if _contents(obj):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def settle(storage: Storage, row: Row, obj: Object) -> Stored:
    """Store an object's new state, or remove it when its deletion is complete."""
    key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
    if finished(obj):
        # Watchers get the previous state; only the caller gets the one without the last finalizer.
        return stamped(obj, storage.remove(row.storage, key).revision)
    return storage.write(row.storage, key, obj)


def _contents(obj: Object) -> bool:
    """Return whether this is a namespace with finalizers in its spec."""
    return obj["kind"] == "Namespace" and bool(obj.get("spec", {}).get("finalizers"))


def _finalizers(present: list[str], propagation: str) -> list[str]:
    if not propagation:
        return present
    others = [name for name in present if name != FOREGROUND]
    return [*others, FOREGROUND] if propagation == "Foreground" else others


def _grace(row: Row, obj: Object, options: DeleteOptions) -> int:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    if not row.graceful or not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    if options.grace_seconds is not None:
        # A negative grace period means one second.
        return options.grace_seconds if options.grace_seconds >= 0 else 1
    already = obj["metadata"].get("deletionGracePeriodSeconds")
    return int(already if already is not None else spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE))
