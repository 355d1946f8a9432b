"""How the system-upgrade-controller evaluates a Plan: validity, version, hash, and next nodes.

Pure functions, after observations of the real controller.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from hack.actors.conditions import with_condition
from hack.actors.selectors import matches
from upgrade_manager.api.keys import LABEL_HOSTNAME, suc_node_label
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from upgrade_manager.kube.objects import Object

    Secrets = Callable[[str], Object | None]

DIGEST_ANNOTATION = "upgrade.cattle.io/digest"
_DURATION = re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))*$|^0$")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_TERM = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def is_decodable(plan: Object) -> bool:
    """Report whether Go can decode the Plan: the schema accepts any text as a duration."""
    delay = objects.spec(plan).get("postCompleteDelay")
    return delay is None or _DURATION.match(delay) is not None


def delay_of(plan: Object) -> float:
    """Return spec.postCompleteDelay in seconds."""
    text = objects.spec(plan).get("postCompleteDelay") or ""
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _TERM.findall(text))
    return -seconds if text.startswith("-") else seconds


def invalid_reason(plan: Object, secrets: Secrets) -> str:
    """Return why the Plan is invalid, or an empty string."""
    spec = objects.spec(plan)
    drain = spec.get("drain") or {}
    if drain.get("deleteLocalData") is not None and drain.get("deleteEmptydirData") is not None:
        return "spec.drain cannot specify both deleteEmptydirData and deleteLocalData"
    if delay_of(plan) < 0:
        return "spec.postCompleteDelay must not be negative"
    for secret in counted_secrets(plan):
        if secrets(secret) is None:
            return f'secret "{secret}" not found'
    return ""


def counted_secrets(plan: Object) -> list[str]:
    """Return the Secrets whose content is part of the hash."""
    listed = objects.spec(plan).get("secrets") or ()
    return [secret["name"] for secret in listed if not secret.get("ignoreUpdates")]


def version_of(plan: Object) -> str:
    """Return the version that the Plan resolves to; channels are not polled."""
    return (objects.spec(plan).get("version") or "").replace("+", "-")


def hash_of(plan: Object, version: str, secrets: Secrets) -> str:
    """Return status.latestHash: SHA-224 over version, service account, the digest's fields and the Secrets."""
    digest = hashlib.sha224()
    digest.update(version.encode())
    digest.update((objects.spec(plan).get("serviceAccountName") or "").encode())
    for path in (objects.annotations_of(plan).get(DIGEST_ANNOTATION) or "").split(","):
        if path.strip():
            digest.update(_field_text(plan, path.strip()).encode())
    for name in counted_secrets(plan):
        digest.update(_secret_hash(secrets(name) or {}).encode())
    return digest.hexdigest()


def _field_text(plan: Object, path: str) -> str:
    value: Any = plan
    for part in path.removeprefix("spec.").split(".") if path.startswith("spec.") else path.split("."):
        scope = objects.spec(plan) if value is plan else value
        value = scope.get(part) if isinstance(scope, dict) else None
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))


def _secret_hash(secret: Object) -> str:
    digest = hashlib.sha224()
    data = secret.get("data") or {}
    for key in sorted(data):
        digest.update(key.encode())
        digest.update(base64.b64decode(data[key]))
    return digest.hexdigest()


def resolved(plan: Object, secrets: Secrets, *, at: str) -> Object:
    """Return the status with current Validated, LatestResolved, latestVersion and latestHash."""
    status = dict(objects.status(plan))
    reason, version = invalid_reason(plan, secrets), version_of(plan)
    if reason or not version:
        return _not_ready(status, reason, at=at)
    digest = hash_of(plan, version, secrets)
    conditions = status.get("conditions") or []
    if status.get("latestVersion") != version or not conditions:
        conditions = with_condition(conditions, "Complete", "False", reason="Resolved", at=at)
    conditions = with_condition(conditions, "Validated", "True", reason="PlanIsValid", at=at)
    conditions = with_condition(conditions, "LatestResolved", "True", reason="Version", at=at)
    return {**status, "latestVersion": version, "latestHash": digest, "conditions": conditions}


def _not_ready(status: Object, reason: str, *, at: str) -> Object:
    message = "plan is not valid and resolved"
    conditions = with_condition(
        status.get("conditions") or [], "Complete", "False", reason="NotReady", message=message, at=at
    )
    if reason:
        conditions = with_condition(conditions, "Validated", "False", reason="Error", message=reason, at=at)
    else:
        conditions = with_condition(conditions, "Validated", "True", reason="PlanIsValid", at=at)
        message = "spec.version and spec.channel are both empty"
        conditions = with_condition(conditions, "LatestResolved", "False", reason="Error", message=message, at=at)
    return {**status, "conditions": conditions}


def is_ready(status: Object) -> bool:
    """Report whether nodes can be selected."""
    states = {entry["type"]: entry["status"] for entry in status.get("conditions") or ()}
    return states.get("Validated") == "True" and states.get("LatestResolved") == "True"


def hostname(node: Object) -> str:
    """Return the host name, which status.applying lists."""
    return objects.labels(node).get(LABEL_HOSTNAME) or ""


def select(plan: Object, status: Object, nodes: Iterable[Object]) -> list[Object]:
    """Return the nodes to serve now, sorted by name: those in status.applying, then new ones up to the concurrency.

    New nodes are ordered by SHA-256(node UID, plan UID, hash). Raises SelectorError.
    """
    digest, label = status["latestHash"], suc_node_label(objects.name(plan))
    selector = objects.spec(plan).get("nodeSelector")
    applying = set(status.get("applying") or ())
    kept: list[Object] = []
    fresh: list[tuple[str, Object]] = []
    for node in nodes:
        labels = objects.labels(node)
        if not matches(selector, labels) or not hostname(node) or labels.get(label) in {digest, "disabled"}:
            continue
        if hostname(node) in applying:
            kept.append(node)
        else:
            text = objects.uid(node) + objects.uid(plan) + digest
            fresh.append((hashlib.sha256(text.encode()).hexdigest(), node))
    free = max(0, (objects.spec(plan).get("concurrency") or 0) - len(kept))
    fresh.sort(key=lambda pair: pair[0])
    return sorted([*kept, *(node for _, node in fresh[:free])], key=objects.name)


def served(status: Object, hostnames: list[str], *, at: str) -> Object:
    """Return the status with these hosts in applying; without hosts the Plan is complete."""
    if not hostnames:
        conditions = with_condition(status["conditions"], "Complete", "True", reason="Complete", at=at)
        return {key: value for key, value in status.items() if key != "applying"} | {"conditions": conditions}
    if status.get("applying") == hostnames:
        return status
    conditions = with_condition(status["conditions"], "Complete", "False", reason="SyncJob", at=at)
    return {**status, "applying": hostnames, "conditions": conditions}
