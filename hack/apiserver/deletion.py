"""Delete options, and the state of an object after a delete request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hack.apiserver import go_text
from hack.apiserver.json_text import JsonError, read
from hack.apiserver.metadata import tidy
from hack.apiserver.route import truthy
from hack.apiserver.schema.decoding import DecodingError, decode
from hack.apiserver.schema.field_error import invalid, not_supported
from hack.apiserver.schema.go_types import delete_options_type
from hack.apiserver.status import bad_request, conflict, invalid_options
from hack.apiserver.stored import stamped
from upgrade_manager.api.timestamps import format_time

if TYPE_CHECKING:
    from datetime import datetime

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row
    from hack.apiserver.schema.field_error import FieldError
    from hack.apiserver.storage import Storage
    from hack.apiserver.stored import Stored
    from upgrade_manager.kube.transport import Request

_POLICIES = ("Foreground", "Background", "Orphan")
#: Finalizers that the garbage collector handles.
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
#: The grace period of a running Pod in seconds, if neither it nor the request sets one.
DEFAULT_GRACE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """DeleteOptions, from the body or the query."""

    propagation: str = ""
    #: The deprecated orphanDependents; None if not set.
    orphan_dependents: bool | None = None
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False

    @property
    def sets_propagation(self) -> bool:
        """Return whether the client chose a propagation policy."""
        return bool(self.propagation) or self.orphan_dependents is not None

    @property
    def policy(self) -> str:
        """Return the propagation policy, from either field."""
        if self.orphan_dependents is None:
            return self.propagation
        return "Orphan" if self.orphan_dependents else "Background"


def _body(request: Request) -> Any:
    """Return the options in the body; a body replaces the query. Raises StatusError 400."""
    if not request.body.strip():
        return _query(request)
    try:
        body = read(request.body)
    except JsonError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(body, dict):
        raise bad_request(f"couldn't get version/kind; json parse error: cannot unmarshal {go_text.json_type(body)}")
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        version = body.get("apiVersion", "v1")
        kind = f'no kind "{body["kind"]}" is registered for version "{version}"'
        raise bad_request(f'{kind} in scheme "pkg/runtime/scheme.go:111"')
    return body


def _query(request: Request) -> dict[str, Any]:
    given: dict[str, Any] = dict(request.query)
    given["dryRun"] = [value for key, value in request.query if key == "dryRun" and value]
    if "orphanDependents" in given:
        given["orphanDependents"] = truthy(given["orphanDependents"])
    if "gracePeriodSeconds" in given:
        text = given["gracePeriodSeconds"]
        if not text.removeprefix("-").isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        given["gracePeriodSeconds"] = int(text)
    return given


def delete_options(request: Request) -> DeleteOptions:
    """Parse the options. Raises StatusError 400 or 422."""
    try:
        given = decode(_body(request), delete_options_type(), unknown=[])
    except DecodingError as error:
        raise bad_request(str(error)) from error
    propagation, orphan = given.get("propagationPolicy") or "", given.get("orphanDependents")
    errors: list[FieldError] = []
    if propagation and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", propagation, detail))
    elif propagation not in {"", *_POLICIES}:
        errors.append(not_supported("propagationPolicy", propagation, (*_POLICIES, "nil")))
    errors += dry_run_errors(given.get("dryRun") or [])
    if errors:
        raise invalid_options("DeleteOptions", errors)
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        propagation=str(propagation),
        orphan_dependents=orphan,
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        grace_seconds=given.get("gracePeriodSeconds"),
        dry_run=bool(given.get("dryRun")),
    )


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
    finalizers = _finalizers(row, metadata.get("finalizers", []), options.policy)
    if row.deletion_finalizer and "deletionTimestamp" not in metadata:
        finalizers = [*finalizers, row.deletion_finalizer]
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


def _finalizers(row: Row, present: list[str], propagation: str) -> list[str]:
    if not propagation and (FOREGROUND in present or ORPHAN in present):
        return present
    policy = propagation or ("Orphan" if row.orphan_by_default else "Background")
    others = [name for name in present if name not in {FOREGROUND, ORPHAN}]
    added = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
    return others + added


def _grace(row: Row, obj: Object, options: DeleteOptions) -> int:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    if not row.graceful or not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    if options.grace_seconds is not None:
        # A negative grace period means one second.
        return options.grace_seconds if options.grace_seconds >= 0 else 1
    already = obj["metadata"].get("deletionGracePeriodSeconds")
    return int(already if already is not None else spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE))
