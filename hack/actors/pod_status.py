"""The status that a kubelet writes for a Pod, stage by stage."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from hack.actors.conditions import TRANSITION, with_condition
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

_POD_NETWORK = "10.52"


def is_over(pod: Object) -> bool:
    """Report whether all containers have terminated for good."""
    return objects.status(pod).get("phase") in {"Succeeded", "Failed"}


def is_ready(pod: Object) -> bool:
    """Report whether the Pod is ready."""
    return objects.is_condition_true(pod, "Ready")


def waiting(pod: Object, why: str) -> Object:
    """Build the status of a Pod that waits; `why` begins with the reason and a colon."""
    reason, _, message = why.partition(": ")
    state = {"waiting": {"reason": reason, "message": message}}
    return {**objects.status(pod), "phase": "Pending", "containerStatuses": _containers(pod, state, is_up=False)}


def rejected(pod: Object, *, reason: str, message: str) -> Object:
    """Build the status of a Pod that the kubelet does not admit."""
    return {**objects.status(pod), "phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}


def running(pod: Object, *, at: str, ready: bool, restarted: bool = False) -> Object:
    """Build the status of a Pod whose containers run."""
    old = objects.status(pod)
    conditions = _conditions(pod, at=at, ready=ready)
    return {
        **old,
        "phase": "Running",
        "conditions": conditions,
        "startTime": old.get("startTime") or at,
        "podIP": old.get("podIP") or _address(pod),
        "podIPs": [{"ip": old.get("podIP") or _address(pod)}],
        "containerStatuses": _containers(pod, {"running": {"startedAt": at}}, is_up=ready, restarted=restarted),
    }


def ready(pod: Object, *, at: str) -> Object:
    """Build the status of a Pod whose readiness probe succeeds."""
    old = objects.status(pod)
    containers = [{**one, "ready": True, "started": True} for one in old.get("containerStatuses") or ()]
    return {**old, "conditions": _conditions(pod, at=at, ready=True), "containerStatuses": containers}


def unready(pod: Object, *, at: str) -> Object:
    """Build the status of a Pod whose readiness probe fails."""
    old = objects.status(pod)
    containers = [{**one, "ready": False} for one in old.get("containerStatuses") or ()]
    return {**old, "conditions": _conditions(pod, at=at, ready=False), "containerStatuses": containers}


def ended(pod: Object, *, code: int, message: str, at: str, reason: str = "") -> Object:
    """Build the status of a terminated Pod with its exit code and termination message."""
    old = objects.status(pod)
    terminated: Object = {
        "exitCode": code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "startedAt": old.get("startTime") or at,
        "finishedAt": at,
    }
    if message:
        terminated["message"] = message
    conditions = _conditions(pod, at=at, ready=False, reason="PodCompleted" if code == 0 else "PodFailed")
    return {
        **old,
        "phase": "Succeeded" if code == 0 else "Failed",
        "conditions": conditions,
        "containerStatuses": _containers(pod, {"terminated": terminated}, is_up=False),
    }


def finished_at(pod: Object) -> str:
    """Return when the last container ended, or an empty string."""
    states = [one.get("state") or {} for one in objects.status(pod).get("containerStatuses") or ()]
    times = [(state.get("terminated") or {}).get("finishedAt") or "" for state in states]
    return max(times, default="")


def _conditions(pod: Object, *, at: str, ready: bool, reason: str = "") -> list[Object]:
    conditions = objects.status(pod).get("conditions") or []
    up = "True" if ready else "False"
    why = "" if ready else reason or "ContainersNotReady"
    conditions = with_condition(conditions, "PodScheduled", "True", at=at, time=TRANSITION)
    conditions = with_condition(conditions, "Initialized", "True", at=at, time=TRANSITION)
    conditions = with_condition(conditions, "ContainersReady", up, reason=why, at=at, time=TRANSITION)
    return with_condition(conditions, "Ready", up, reason=why, at=at, time=TRANSITION)


def _containers(pod: Object, state: Object, *, is_up: bool, restarted: bool = False) -> list[Object]:
    known = {one.get("name"): one for one in objects.status(pod).get("containerStatuses") or ()}
    return [_container(one, known.get(one["name"]) or {}, state, is_up, restarted) for one in _listed(pod)]


def _container(container: Object, old: Object, state: Object, is_up: bool, restarted: bool) -> Object:  # noqa: FBT001
    image = container.get("image") or ""
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"sha256:{hashlib.sha256(image.encode()).hexdigest()}" if "waiting" not in state else "",
        "ready": is_up,
        "started": is_up,
        "restartCount": int(old.get("restartCount") or 0) + (1 if restarted else 0),
        "state": state,
    }


def _listed(pod: Object) -> list[Any]:
    return objects.spec(pod).get("containers") or []


def _address(pod: Object) -> str:
    """Return an address of the Pod network, by the uid."""
    digest = hashlib.sha256(objects.uid(pod).encode()).digest()
    return f"{_POD_NETWORK}.{digest[0]}.{digest[1] % 253 + 1}"
