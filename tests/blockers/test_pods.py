from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.blockers.pods import pod_blocker
from upgrade_manager.facts.pod_reason import start_progress

if TYPE_CHECKING:
    from tests.blockers.conftest import FakeView

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
row = pytest.param


def pod(phase: str = "Pending", *, metadata: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    head = {"name": "p", "namespace": "ns", "creationTimestamp": "2026-01-01T11:00:00Z", **(metadata or {})}
    return {"metadata": head, "spec": {"nodeName": "n1"}, "status": {"phase": phase, **status}}


def waiting(reason: str, message: str = "", *, init: bool = False) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    container = {"name": "c", "image": "a/b:1", "state": state}
    return {"initContainerStatuses" if init else "containerStatuses": [container]}


def unscheduled(message: object) -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]}


def crashing(state: dict[str, Any], *, restarts: int = 2, ready: bool = False, init: bool = False) -> dict[str, Any]:
    """Return a container that has ended with an error before, in that state."""
    status = {"name": "c", "ready": ready, "restartCount": restarts, "state": state, "lastState": ENDED}
    return {"initContainerStatuses" if init else "containerStatuses": [status]}


FREE = "Provide the resource that the scheduler reports as missing"
PULL = (
    "Find out why on node n1: crictl pull a/b:1 (2) Repair the registry or its mirrors: "
    "kubectl edit settings.harvesterhci.io containerd-registry"
)
MISSES = "Create the ConfigMap or Secret that the container refers to"
RESTART = "systemctl try-restart rke2-server rke2-agent"
START = (
    "Check containerd on node n1: tail -n 50 /var/lib/rancher/rke2/agent/containerd/containerd.log "
    f"(2) If it hangs, check its disk, and restart it there: {RESTART}"
)
KUBELET = (
    "Check the kubelet on node n1: tail -n 50 /var/lib/rancher/rke2/agent/logs/kubelet.log "
    f"(2) If it hangs, restart it there: {RESTART}"
)
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
ENDED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "no such file\n"}}
RUNNING: dict[str, Any] = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}


@pytest.mark.parametrize(
    ("found", "reason", "text", "first"),
    [
        row(
            pod(**unscheduled("0/3 nodes are available.")),
            "PodUnschedulable",
            "it cannot be scheduled (Unschedulable: 0/3 nodes are available)",
            FREE,
            id="unschedulable",
        ),
        row(
            pod(**unscheduled(None)),
            "PodUnschedulable",
            "it cannot be scheduled (Unschedulable)",
            FREE,
            id="no message",
        ),
        row(
            pod(**waiting("ImagePullBackOff", 'Back-off pulling image "a/b:1"')),
            "ImagePullFailed",
            'its image cannot be pulled (ImagePullBackOff: Back-off pulling image "a/b:1")',
            PULL,
            id="image",
        ),
        row(
            pod("Running", **waiting("CrashLoopBackOff", "back-off 10s")),
            "ContainerFailing",
            "a container does not start (CrashLoopBackOff: back-off 10s)",
            START,
            id="crash loop",
        ),
        row(
            pod(**waiting("CreateContainerConfigError", 'secret "x" not found', init=True)),
            "ContainerFailing",
            'a container does not start (CreateContainerConfigError: secret "x" not found)',
            MISSES,
            id="init container",
        ),
        row(
            pod(startTime="2026-01-01T11:00:01Z", **waiting("ContainerCreating")),
            "PodPending",
            "it does not start (its containers are being created)",
            KUBELET,
            id="creating",
        ),
        row(
            pod(),
            "PodPending",
            "it does not start (the kubelet of node n1 has not accepted it)",
            KUBELET,
            id="not accepted",
        ),
        row(
            pod(reason="NodeAffinity", message="Pod was rejected"),
            "PodPending",
            "it does not start (NodeAffinity: Pod was rejected)",
            KUBELET,
            id="rejected",
        ),
        row(
            {"metadata": {"name": "p", "namespace": "ns"}},
            "PodPending",
            "cannot start: the scheduler has not assigned a node",
            "Check the scheduler: kubectl -n kube-system get pods -l component=kube-scheduler (2) If none is Ready, "
            "restart rke2-server on the control-plane nodes, one after the other: systemctl restart rke2-server",
            id="without status",
        ),
        row(
            pod(conditions=None, containerStatuses=[None]), "PodPending", "it does not start", KUBELET, id="null lists"
        ),
    ],
)
def test_pod_that_does_not_run(view: FakeView, found: dict[str, Any], reason: str, text: str, first: str) -> None:
    blocker = pod_blocker(view, found, node="", since=NOON)
    assert blocker is not None
    assert (blocker.reason, blocker.kind, blocker.namespace, blocker.name) == (reason, "Pod", "ns", "p")
    assert blocker.message.startswith((f"Pod ns/p: {text}", f"Pod ns/p {text}"))
    show = f"({3 if '(2)' in first else 2}) Show its events: kubectl describe pod -n ns p"
    assert blocker.remedy == f"(1) {first} {show}"
    assert blocker.since == NOON


@pytest.mark.parametrize(
    "found",
    [
        row(pod("Running", **RUNNING), id="running"),
        row(pod("Running"), id="running, without containers"),
        row(pod("Succeeded"), id="succeeded"),
        row(pod("Failed", **waiting("ImagePullBackOff")), id="failed"),
        row(pod(metadata={"deletionTimestamp": "x"}), id="deleting"),
    ],
)
def test_pod_that_runs_is_not_a_blocker(view: FakeView, found: dict[str, Any]) -> None:
    assert pod_blocker(view, found, node="n1", since=NOON) is None


@pytest.mark.rule("blockers: a crash loop is one blocker in all its states")
@pytest.mark.parametrize(
    "found",
    [
        row(pod("Running", **crashing(BACK_OFF)), id="waits for its restart"),
        row(
            pod("Running", **crashing({"running": {"startedAt": "2026-01-01T11:59:58Z"}})),
            id="runs until its next crash",
        ),
        row(pod("Running", **crashing(ENDED)), id="has ended"),
        row(pod("Running", **crashing({"waiting": {"reason": "ContainerCreating"}})), id="is created again"),
        row(pod("Pending", **crashing({"running": {}}, init=True)), id="init container"),
    ],
)
def test_crash_loop_is_one_blocker_in_all_its_states(view: FakeView, found: dict[str, Any]) -> None:
    blocker = pod_blocker(view, found, node="", since=NOON)
    assert blocker is not None
    assert blocker.reason == "ContainerFailing"
    assert blocker.message == "Pod ns/p: a container is restarted after errors (exit code 1, Error: no such file)"
    assert blocker.remedy == "Show why it ended: kubectl logs -n ns p --all-containers --previous"


@pytest.mark.parametrize(
    "container",
    [
        row(crashing({"running": {}}, ready=True), id="ready"),
        row(crashing({"running": {}}, restarts=0), id="not restarted"),
        row({"containerStatuses": [{"restartCount": 1, "lastState": {"terminated": {"exitCode": 0}}}]}, id="no error"),
        row({"containerStatuses": [{"restartCount": "1", "lastState": {"terminated": [1]}}]}, id="wrong types"),
    ],
)
def test_restarted_container_that_is_not_a_crash_loop(view: FakeView, container: dict[str, Any]) -> None:
    assert pod_blocker(view, pod("Running", **container), node="", since=NOON) is None


def test_taint_comes_before_what_else_the_scheduler_may_miss(view: FakeView) -> None:
    taint = {"key": "maintenance", "value": "v", "effect": "NoSchedule"}
    view.found["Node"] = [{"metadata": {"name": "n1"}, "spec": {"taints": [taint]}}]
    blocker = pod_blocker(view, pod(**unscheduled("0/1 nodes are available.")), node="", since=NOON)
    assert blocker is not None
    taint_node = "kubectl taint node n1 maintenance"
    remove = f"Remove the taint of node n1: {taint_node}:NoSchedule-"
    undo = f"Undo it after the upgrade: {taint_node}=v:NoSchedule"
    assert blocker.remedy == f"(1) {remove} (2) {undo} (3) Show its events: kubectl describe pod -n ns p"


def test_node_of_the_wait_comes_first(view: FakeView) -> None:
    for node, expected in (("n2", "n2"), ("", "n1")):
        blocker = pod_blocker(view, pod(), node=node, since=NOON)
        assert blocker is not None
        assert blocker.node == expected


def test_hostile_words_become_one_short_line(view: FakeView) -> None:
    blocker = pod_blocker(view, pod(**unscheduled("a\x1b[31m\nb\u202e" + "c" * 1_000_000)), node="", since=NOON)
    assert blocker is not None
    assert len(blocker.message) < 500
    assert "\n" not in blocker.message


@pytest.mark.parametrize(
    ("conditions", "time"),
    [
        row([], "11:00", id="created"),
        row([{"type": "PodScheduled", "lastTransitionTime": "2026-01-01T11:30:00Z"}], "11:30", id="scheduled"),
        row([{"type": "Ready", "lastTransitionTime": "2026-01-01T11:50:00Z"}], "11:00", id="restarted"),
    ],
)
def test_progress_of_a_start(conditions: list[Any], time: str) -> None:
    found = start_progress(pod(conditions=conditions))
    assert found is not None
    assert f"{found:%H:%M}" == time
    assert start_progress({"metadata": {"name": "p"}}) is None


@pytest.mark.parametrize(
    "reason",
    [
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    ],
)
def test_reasons_of_the_kubelet_for_a_missing_image(view: FakeView, reason: str) -> None:
    """The names are those of k8s.io/kubernetes/pkg/kubelet/images/types.go and the CRI's errors."""
    starting = {"name": "d", "image": "d/e:2", "state": {"waiting": {"reason": "ContainerCreating"}}}
    status = waiting(reason)
    blocker = pod_blocker(view, pod(containerStatuses=[starting, *status["containerStatuses"]]), node="", since=NOON)
    assert blocker is not None
    assert blocker.reason == "ImagePullFailed"
    assert "crictl pull a/b:1" in blocker.remedy
