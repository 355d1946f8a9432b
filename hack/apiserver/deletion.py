"""What a delete request wants, and what it makes of an object."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from hack.apiserver import protobuf
from hack.apiserver.metadata import tidy, timestamp
from hack.apiserver.patches import parsed
from hack.apiserver.status import bad_request, conflict, invalid
from hack.apiserver.stored import stamped
from upgrade_manager.kube.resource import Resource

if TYPE_CHECKING:
    from datetime import datetime

    from hack.apiserver.admission import Object
    from hack.apiserver.resources import Row
    from hack.apiserver.storage import Storage
    from hack.apiserver.stored import Stored
    from upgrade_manager.kube.transport import Request

_OPTIONS = Resource(group="meta.k8s.io", version="v1", plural="deleteoptions", kind="DeleteOptions")
#: Finalizers by which the garbage collector is made to act before the object goes.
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
#: Seconds that a running Pod gets when neither it nor the request says.
DEFAULT_GRACE = 30

Propagation = Literal["", "Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """DeleteOptions, from the body or the query."""

    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    dry_run: bool = False


def _body(request: Request) -> Any:
    if request.headers.get("content-type", "").startswith(protobuf.MEDIA_TYPE):
        return protobuf.decode(request.body) if request.body else {}
    return parsed(request.body) if request.body.strip() else {}


def delete_options(request: Request) -> DeleteOptions:
    """Read them; the body wins over the query, as on the real server. Raises StatusError 400."""
    body = _body(request)
    if not isinstance(body, dict):
        raise bad_request("the delete options must be an object")
    given: dict[str, Any] = dict(request.query) | {key: value for key, value in body.items() if value is not None}
    propagation = str(given.get("propagationPolicy", ""))
    if "orphanDependents" in given and not propagation:
        propagation = "Orphan" if str(given["orphanDependents"]).lower() == "true" else "Background"
    if propagation not in {"", "Background", "Foreground", "Orphan"}:
        message = f'Unsupported value: "{propagation}": supported values: "Background", "Foreground", "Orphan", "nil"'
        cause = {"reason": "FieldValueNotSupported", "message": message, "field": "propagationPolicy"}
        raise invalid(_OPTIONS, "", [cause])
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise bad_request("the preconditions of a delete must be an object")
    return DeleteOptions(
        propagation=propagation,
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        grace_seconds=_seconds(given.get("gracePeriodSeconds")),
        dry_run=bool(given.get("dryRun")),
    )


def _seconds(given: Any) -> int | None:
    if given is None:
        return None
    try:
        return int(given)
    except (TypeError, ValueError) as error:
        raise bad_request(f"gracePeriodSeconds must be a number of seconds, not {given!r}") from error


def check_preconditions(row: Row, obj: Object, options: DeleteOptions) -> None:
    """Refuse to delete another object of the same name, or another state. Raises StatusError 409."""
    metadata = obj["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {metadata['uid']}"
        raise conflict(row.resource, metadata["name"], why)
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        why = (
            f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
            f"ResourceVersion in object meta: {metadata['resourceVersion']}"
        )
        raise conflict(row.resource, metadata["name"], why)


def dying(row: Row, obj: Object, options: DeleteOptions, *, now: datetime) -> Object | None:
    """The object with its deletion under way; None when nothing holds it and it goes at once."""
    metadata = obj["metadata"]
    finalizers = _finalizers(row, metadata.get("finalizers", []), options.propagation)
    if row.deletion_finalizer and "deletionTimestamp" not in metadata:
        finalizers = [*finalizers, row.deletion_finalizer]
    grace = _grace(row, obj, options)
    if not finalizers and not grace and not _contents(obj):
        return None
    marked = metadata | {"finalizers": finalizers}
    if "deletionTimestamp" not in metadata:
        marked["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
        if metadata.get("generation"):
            marked["generation"] = metadata["generation"] + 1
    if grace <= metadata.get("deletionGracePeriodSeconds", grace):
        marked["deletionGracePeriodSeconds"] = grace
    doomed = obj | {"metadata": tidy(marked)}
    if _contents(obj):
        doomed["status"] = obj.get("status", {}) | {"phase": "Terminating"}
    return doomed


def finished(obj: Object) -> bool:
    """Whether an update took away the last thing that held a dying object."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if _contents(obj):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def settle(storage: Storage, row: Row, obj: Object) -> Stored:
    """Store an object's new state, or remove it when that state holds nothing back from its deletion."""
    key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
    if finished(obj):
        # Nobody sees the state without its last finalizer but who asked for it: watchers get the state before.
        return stamped(obj, storage.remove(row.storage, key).revision)
    return storage.write(row.storage, key, obj)


def _contents(obj: Object) -> bool:
    """Whether it is a namespace that has not been emptied yet."""
    return obj["kind"] == "Namespace" and bool(obj.get("spec", {}).get("finalizers"))


def _finalizers(row: Row, present: list[str], propagation: str) -> list[str]:
    if not propagation and (FOREGROUND in present or ORPHAN in present):
        return present
    wanted = propagation or ("Orphan" if row.orphan_by_default else "Background")
    others = [name for name in present if name not in {FOREGROUND, ORPHAN}]
    added = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(wanted, [])
    return others + added


def _grace(row: Row, obj: Object, options: DeleteOptions) -> int:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    if not row.graceful or not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    if options.grace_seconds is not None:
        return max(options.grace_seconds, 0)
    already = obj["metadata"].get("deletionGracePeriodSeconds")
    return int(already if already is not None else spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE))
