"""The scheduler's or the kubelet's reason why a Pod does not run; blockers/pods.py has the remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from upgrade_manager.kube.objects import Object

#: The reasons that `pod_reason` may return.
POD_REASONS = (
    BlockerReason.POD_UNSCHEDULABLE,
    BlockerReason.IMAGE_PULL_FAILED,
    BlockerReason.CONTAINER_FAILING,
    BlockerReason.POD_PENDING,
)
#: Reasons of containers that start normally.
_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
#: A ConfigMap, Secret or another object of the specification is missing.
_CONFIG_ERROR = "CreateContainerConfigError"
#: Conditions of a starting Pod; each condition becomes True once.
_STAGES = ("PodScheduled", "PodReadyToStartContainers", "Initialized")


def pod_reason(pod: Object) -> tuple[BlockerReason, str] | None:
    """Return why the Pod does not run; None if it runs, has run, or is being deleted."""
    if objects.is_deleting(pod) or is_final(pod):
        return None
    scheduled = objects.condition(pod, "PodScheduled")
    if objects.text(scheduled, "status") == "False":
        return BlockerReason.POD_UNSCHEDULABLE, f"it cannot be scheduled ({_words(scheduled)})"
    for container in container_statuses(pod):
        found = _container_reason(container)
        if found is not None:
            return found
    if objects.text(pod, "status", "phase") == "Running":
        return None
    words = _words(objects.mapping(pod, "status")) or _stage(pod)
    return BlockerReason.POD_PENDING, f"it does not start ({words})"


def is_unassigned(pod: Object) -> bool:
    """Return True for a pending Pod that the scheduler has not seen, and whose status says nothing else."""
    return not objects.text(pod, "spec", "nodeName") and not _words(objects.mapping(pod, "status"))


def crashes(pod: Object) -> bool:
    """Return True if a container of the Pod is restarted after errors."""
    return any(map(_last_crash, container_statuses(pod)))


def lacks_config(pod: Object) -> bool:
    """Return True if an object that a container refers to does not exist."""
    return any(_waiting_reason(one) == _CONFIG_ERROR for one in container_statuses(pod))


def unpulled_image(pod: Object) -> str:
    """Return the image that cannot be pulled; empty if the image is unknown."""
    names = (objects.text(one, "image") for one in container_statuses(pod) if _waiting_reason(one) in _IMAGE)
    return next(filter(None, names), "")


def show_events(pod: Object) -> Remedy:
    """Return the remedy that shows more details of a Pod that does not start or end."""
    return Remedy("Show its events", command=f"kubectl describe pod -n {objects.namespace(pod)} {objects.name(pod)}")


def start_progress(pod: Object) -> datetime | None:
    """Return the time of the last progress of the Pod's start; restarts of its containers do not count."""
    times = [objects.text(pod, "metadata", "creationTimestamp")]
    times += [objects.text(objects.condition(pod, type_), "lastTransitionTime") for type_ in _STAGES]
    return parse_time(max(times))


def finished_at(pod: Object) -> datetime | None:
    """Return the time at which the Pod's last container terminated; None if the Pod lacks the time."""
    times = [objects.text(one, "state", "terminated", "finishedAt") for one in container_statuses(pod)]
    return parse_time(max(times, default=""))


def _container_reason(container: object) -> tuple[BlockerReason, str] | None:
    crash = _last_crash(container)
    if crash:
        return BlockerReason.CONTAINER_FAILING, f"a container is restarted after errors ({_crash_words(crash)})"
    waiting = objects.mapping(container, "state", "waiting")
    reason = objects.text(waiting, "reason")
    if reason in _IMAGE:
        return BlockerReason.IMAGE_PULL_FAILED, f"its image cannot be pulled ({_words(waiting)})"
    if waiting and reason not in _STARTING:
        return BlockerReason.CONTAINER_FAILING, f"a container does not start ({_words(waiting)})"
    return None


def _stage(pod: Object) -> str:
    """Return the stage that the start of the Pod has reached."""
    node = objects.text(pod, "spec", "nodeName")
    if not node:
        return "the scheduler has not assigned it to a node"
    if objects.text(pod, "status", "startTime"):
        return "its containers are being created"
    return f"the kubelet of node {node} has not accepted it"


def container_statuses(pod: Object) -> Iterator[object]:
    """Yield the statuses of the Pod's containers; those of init containers are first."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from objects.items(pod, "status", kind)


def _waiting_reason(container: object) -> str:
    return objects.text(container, "state", "waiting", "reason")


def _last_crash(container: object) -> Mapping[str, Any]:
    """Return the last termination of a container that the kubelet restarts after errors.

    Between two crashes such a container runs for a while, and is terminated until the kubelet restarts it.
    """
    if objects.is_true(container, "ready") or not objects.number(container, "restartCount"):
        return {}
    ended = (objects.mapping(container, state, "terminated") for state in ("state", "lastState"))
    return next((one for one in ended if objects.number(one, "exitCode")), {})


def _crash_words(crash: Mapping[str, Any]) -> str:
    return f"exit code {objects.number(crash, 'exitCode')}, {_words(crash) or 'no reason'}"


def _words(source: object) -> str:
    return ": ".join(part for part in (objects.text(source, "reason"), objects.excerpt(source, "message")) if part)
