"""The audit trail: the log line of each write has the object, and old and new values of changed fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import DEPLOYMENTS, JOBS, SECRETS, SUC_PLANS
from upgrade_manager.resources.suc_plan import image_of_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.patch import Patch
    from upgrade_manager.kube.resources import Resource

#: Characters of a value.
MAX_VALUE = 200
#: Changes of one patch.
MAX_CHANGES = 20
#: A value that the patch does not test or that the field does not have.
_UNKNOWN = object()
log = structlog.get_logger(__name__)


def in_phase(phase: str) -> None:
    """Add the phase value to the further lines of the reconcile."""
    structlog.contextvars.bind_contextvars(phase=phase)


def created(resource: Resource, manifest: Object, *, creator: str) -> None:
    """Log a created object without its content; for an object that runs code, log image, node, account and creator."""
    names = _names(resource, objects.name(manifest), objects.namespace(manifest))
    code = _code(resource, objects.spec(manifest))
    log.info("object created", **names, **code, **({"created_by": creator} if code else {}))


def removed(resource: Resource, name: str, *, namespace: str) -> None:
    """Log an object that was removed."""
    log.info("object removed", **_names(resource, name, namespace))


def removed_all(resource: Resource, *, namespace: str, selector: str) -> None:
    """Log that all selected objects were removed."""
    log.info("objects removed", kind=resource.kind, namespace=namespace, selector=selector)


def patched(
    resource: Resource, name: str, patch: Patch, *, namespace: str = "", event: str = "", before: Object | None = None
) -> None:
    """Log a patched object; `event` names the purpose of the patch, `before` is the object before the patch."""
    found = changes(patch, before, is_secret=resource == SECRETS)
    log.info(event or "object patched", **_names(resource, name, namespace), changes=found)


def status_patched(plan: Object, reached: list[str], difference: Object) -> bool:
    """Log each changed phase and node state of the plan; without such a change, log the fields and return False."""
    before = objects.status(plan)
    previous = before.get("currentPhase") or ""
    for value in reached:
        log.info("phase changed", **{"from": previous, "to": value})
        previous = value
    nodes = before.get("nodeUpgradeStatuses") or {}
    entries = difference.get("nodeUpgradeStatuses") or {}
    moved = {node: entry["state"] for node, entry in entries.items() if entry and "state" in entry}
    for node, state in moved.items():
        log.info("node state changed", node=node, **{"from": (nodes.get(node) or {}).get("state", ""), "to": state})
    if not reached and not moved:
        log.info("status patched", fields=sorted(difference))
        return False
    return True


def changes(patch: Patch, before: Object | None, *, is_secret: bool) -> list[str]:
    """Return each changed field with its old and new value; for a Secret, only fields of the metadata have values."""
    found = _operations(patch) if isinstance(patch, JsonPatch) else _members(patch.body, before)
    lines = [
        field if is_secret and not field.startswith("metadata.") else f"{field}: {_change(old, new)}"
        for field, old, new in found
        if field != "metadata.resourceVersion" and old != new
    ]
    more = len(lines) - MAX_CHANGES
    return [*lines[:MAX_CHANGES], *([f"{more} more"] if more > 0 else [])]


def describe(value: Any) -> str:
    """Return a value for a log line or an event: JSON of bounded length."""
    if value is None:
        return "unset"
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _names(resource: Resource, name: str, namespace: str) -> dict[str, str]:
    return {"kind": resource.kind, "object": f"{namespace}/{name}" if namespace else name}


def _code(resource: Resource, spec: Object) -> dict[str, str]:
    """Return node, image, service account and privilege of a Job, a Plan or a Deployment; nothing for other kinds."""
    if resource == SUC_PLANS:
        # The controller's Jobs are always privileged.
        return _runs(
            node="all that are managed", image=image_of_jobs(spec), account=spec["serviceAccountName"], is_root=True
        )
    if resource not in {JOBS, DEPLOYMENTS}:
        return {}
    pod = spec["template"]["spec"]
    is_root = any((one.get("securityContext") or {}).get("privileged") for one in pod["containers"])
    return _runs(
        node=pod.get("nodeName") or "any",
        image=", ".join(one["image"] for one in pod["containers"]),
        account=pod.get("serviceAccountName") or "default",
        is_root=is_root,
    )


def _runs(*, node: str, image: str, account: str, is_root: bool) -> dict[str, str]:
    return {"node": node, "image": image, "service_account": account, "privileged": "yes" if is_root else "no"}


def _change(old: Any, new: Any) -> str:
    after = "removed" if new is None else describe(new)
    return after if old is _UNKNOWN else f"{describe(old)} → {after}"


def _operations(patch: JsonPatch) -> Iterator[tuple[str, Any, Any]]:
    """Yield field, old and new value; the operation's test has the old value."""
    tested = {one["path"]: one["value"] for one in patch.ops if one["op"] == "test"}
    for one in patch.ops:
        if one["op"] != "test":
            yield _field(one["path"]), tested.get(one["path"], _UNKNOWN), one.get("value")


def _field(pointer: str) -> str:
    parts = pointer.removeprefix("/").split("/")
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _members(body: Object, before: Object | None, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    for key, value in body.items():
        old = before.get(key) if before is not None else None
        if isinstance(value, dict) and value:
            yield from _members(value, (old or {}) if before is not None else None, f"{path}{key}.")
        else:
            yield f"{path}{key}", _UNKNOWN if before is None else old, value
