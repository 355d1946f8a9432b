"""Why a Pod does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.remedy import steps
from upgrade_manager.blockers.taints import untaint_steps
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from upgrade_manager.blockers.view import View
    from upgrade_manager.kube.objects import Object

#: Reasons of containers that start normally.
STARTING = frozenset({"ContainerCreating", "PodInitializing"})
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
#: Where RKE2 keeps the logs of a node, and the command that restarts its kubelet and containerd.
_AGENT = "/var/lib/rancher/rke2/agent"
_RESTART = "systemctl restart rke2-server, on a worker rke2-agent"
#: What `pod_blocker` may report.
POD_REASONS = (
    BlockerReason.POD_UNSCHEDULABLE,
    BlockerReason.IMAGE_PULL_FAILED,
    BlockerReason.CONTAINER_FAILING,
    BlockerReason.POD_PENDING,
)
#: Conditions of a Pod that starts, each of which becomes True once.
_STAGES = ("PodScheduled", "PodReadyToStartContainers", "Initialized")
FINISHED = frozenset({"Succeeded", "Failed"})


def pod_blocker(view: View, pod: Object, *, node: str, since: datetime) -> Blocker | None:
    """Return why the Pod does not run; None if it runs, has run, or is being deleted."""
    if objects.is_deleting(pod) or objects.text(pod, "status", "phase") in FINISHED:
        return None
    reason, text = _problem(pod)
    if reason is None:
        return None
    named = f"{objects.namespace(pod)}/{objects.name(pod)}"
    return Blocker(
        reason=reason,
        kind="Pod",
        namespace=objects.namespace(pod),
        name=objects.name(pod),
        node=node or objects.text(pod, "spec", "nodeName"),
        message=f"Pod {named}: {text}",
        remedy=steps(*_remedy(view, reason, pod, node=objects.text(pod, "spec", "nodeName"))),
        since=since,
    )


def _remedy(view: View, reason: BlockerReason, pod: Object, *, node: str) -> Iterator[str]:
    """Yield what to do, and the command that shows more."""
    place = f"-n {objects.namespace(pod)} {objects.name(pod)}"
    if reason is BlockerReason.POD_UNSCHEDULABLE:
        yield from untaint_steps(view, pod) or ("Free what the scheduler misses",)
    elif reason is BlockerReason.IMAGE_PULL_FAILED:
        yield f"Find out why on node {node}: crictl pull {_waiting_image(pod)}"
        yield "Repair the registry or its mirrors (kubectl edit settings.harvesterhci.io containerd-registry)"
    elif reason is BlockerReason.POD_PENDING:
        yield from _delayed_by(node)
    elif any(map(_last_crash, _containers(pod))):
        yield f"Show why it ended: kubectl logs {place} --all-containers --previous"
        return
    elif any(_waiting_reason(one) == _CONFIG_ERROR for one in _containers(pod)):
        yield "Create what it misses"
    else:
        yield f"Check containerd on node {node}: tail -n 50 {_AGENT}/containerd/containerd.log"
        yield f"If it hangs, check its disk, and restart it there: {_RESTART}"
    yield f"Show its events: kubectl describe pod {place}"


def _delayed_by(node: str) -> Iterator[str]:
    if node:
        yield f"Check the kubelet on node {node}: tail -n 50 {_AGENT}/logs/kubelet.log"
        yield f"If it hangs, restart it there: {_RESTART}"
    else:
        yield "Check the scheduler: kubectl -n kube-system get pods -l component=kube-scheduler"
        yield "If none is Ready, restart rke2-server on the control-plane nodes: systemctl restart rke2-server"


def _waiting_image(pod: Object) -> str:
    """Return the image that cannot be pulled."""
    names = (objects.text(one, "image") for one in _containers(pod) if _waiting_reason(one) in _IMAGE)
    return next(filter(None, names), "IMAGE")


def _waiting_reason(container: object) -> str:
    return objects.text(container, "state", "waiting", "reason")


def start_progress(pod: Object) -> datetime | None:
    """Return when the Pod's start last made progress; restarts of its containers do not count."""
    times = [objects.text(pod, "metadata", "creationTimestamp")]
    times += [objects.text(objects.condition(pod, type_), "lastTransitionTime") for type_ in _STAGES]
    return parse_time(max(times))


def finished_at(pod: Object) -> datetime | None:
    """Return when the Pod's last container terminated; None if it does not report that."""
    times = [objects.text(one, "state", "terminated", "finishedAt") for one in _containers(pod)]
    return parse_time(max(times, default=""))


def _problem(pod: Object) -> tuple[BlockerReason | None, str]:
    scheduled = objects.condition(pod, "PodScheduled")
    if objects.text(scheduled, "status") == "False":
        return BlockerReason.POD_UNSCHEDULABLE, f"it cannot be scheduled ({_words(scheduled)})"
    for container in _containers(pod):
        crash = _last_crash(container)
        if crash:
            return BlockerReason.CONTAINER_FAILING, f"a container is restarted after errors ({_crash_words(crash)})"
        waiting = objects.mapping(container, "state", "waiting")
        reason = objects.text(waiting, "reason")
        if reason in _IMAGE:
            return BlockerReason.IMAGE_PULL_FAILED, f"its image cannot be pulled ({_words(waiting)})"
        if waiting and reason not in STARTING:
            return BlockerReason.CONTAINER_FAILING, f"a container does not start ({_words(waiting)})"
    if objects.text(pod, "status", "phase") == "Running":
        return None, ""
    node = objects.text(pod, "spec", "nodeName")
    if not node:
        stage = "the scheduler has not assigned it to a node"
    elif objects.text(pod, "status", "startTime"):
        stage = "its containers are being created"
    else:
        stage = f"the kubelet of node {node} has not accepted it"
    return BlockerReason.POD_PENDING, f"it does not start ({_words(objects.mapping(pod, 'status')) or stage})"


def _containers(pod: Object) -> Iterator[object]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from objects.items(pod, "status", kind)


def _last_crash(container: object) -> Mapping[str, Any]:
    """Return how a container last ended that is restarted after errors, in each state of its crash loop.

    Between two crashes it runs for a while, and it has ended before the kubelet restarts it.
    """
    if objects.is_true(container, "ready") or not objects.number(container, "restartCount"):
        return {}
    ended = (objects.mapping(container, state, "terminated") for state in ("state", "lastState"))
    return next((one for one in ended if objects.number(one, "exitCode")), {})


def _crash_words(crash: Mapping[str, Any]) -> str:
    return f"exit code {objects.number(crash, 'exitCode')}, {_words(crash) or 'no reason'}"


def _words(source: object) -> str:
    return ": ".join(part for part in (objects.text(source, "reason"), objects.excerpt(source, "message")) if part)
