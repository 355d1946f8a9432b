"""The system-upgrade-controller's evaluation of a Plan: validity, version, hash, and next nodes.

Pure functions, after observations of the real controller.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hack.actors.conditions import with_condition
from hack.apiserver.selectors import selects
from upgrade_manager.api.keys import LABEL_HOSTNAME, suc_node_label
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upgrade_manager.kube.objects import Object

#: Fields of a Plan that the manager does not use.
_UNSUPPORTED = (
    "channel",
    "cordon",
    "drain",
    "exclusive",
    "imagePullSecrets",
    "postCompleteDelay",
    "postCompleteLabels",
    "prepare",
    "priorityClassName",
    "window",
)


def invalid_reason(plan: Object) -> str:
    """Return why the Plan is invalid or not supported by the simulation, or an empty string."""
    spec = objects.spec(plan)
    fields = [f"spec.{name}" for name in _UNSUPPORTED if spec.get(name)]
    if not all(secret.get("ignoreUpdates") for secret in spec.get("secrets") or ()):
        fields.append("spec.secrets without ignoreUpdates")
    return f"the simulated controller does not support {', '.join(fields)}" if fields else ""


def version_of(plan: Object) -> str:
    """Return the version that the Plan resolves to; channels are not polled."""
    return (objects.spec(plan).get("version") or "").replace("+", "-")


def hash_of(plan: Object, version: str) -> str:
    """Return status.latestHash: SHA-224 over version and service account."""
    text = version + (objects.spec(plan).get("serviceAccountName") or "")
    return hashlib.sha224(text.encode()).hexdigest()


def resolved(plan: Object, *, at: str) -> Object:
    """Return the status with current Validated, LatestResolved, latestVersion and latestHash."""
    status = dict(objects.status(plan))
    reason, version = invalid_reason(plan), version_of(plan)
    if reason or not version:
        return _not_ready(status, reason, at=at)
    digest = hash_of(plan, version)
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
        if not selects(selector, labels) or not hostname(node) or labels.get(label) in {digest, "disabled"}:
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
