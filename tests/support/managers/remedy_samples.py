"""One blocker for each builder of remedies: what users copy from a screen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.blockers.conftest import FakeView
from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.pods import pod_blocker, pull
from upgrade_manager.blockers.refusals import Refusals
from upgrade_manager.blockers.remedy import permissions
from upgrade_manager.blockers.taints import untaint_steps
from upgrade_manager.blockers.upgrade_controller import FINDERS as CONTROLLER_FINDERS
from upgrade_manager.blockers.wait import PlanWait
from upgrade_manager.facts import deployments, drain_hooks, evictions, missing_nodes, node_obstacles, volumes
from upgrade_manager.facts.removal import ways_out as removal_ways_out
from upgrade_manager.facts.suc_nodes import hostname_remedy
from upgrade_manager.facts.vm_obstacles import vm_obstacle
from upgrade_manager.kube.errors import Terminal, WrittenObject
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.pipeline.phases import vm_updates

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NODE = "node-1"
TAINT = {"key": "example.com/maintenance", "value": "yes", "effect": "NoSchedule"}
HOOK = "example.com/hook"
STRATEGY = {"workerDrainOptions": {"preDrainHooks": [{"annotation": HOOK}, {"annotation": "b/c"}]}}
WEBHOOK = 'failed calling webhook "policy.example.com": connection refused'
POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "default"}, "spec": {}}


def _budget(name: str, *, healthy: int = 3, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "shop"}}, **spec},
        "status": {"currentHealthy": healthy, "desiredHealthy": 3, "disruptionsAllowed": 0, "expectedPods": 3},
    }


#: The objects that the commands change.
BUDGET, ILL_BUDGET = _budget("shop", minAvailable=3), _budget("ill", healthy=1, minAvailable=3)
VOLUME = {"metadata": {"name": "v", "namespace": "longhorn-system"}, "spec": {"diskSelector": ["fast"]}}
MANY_REPLICAS = {"metadata": {"name": "w", "namespace": "longhorn-system"}, "spec": {"numberOfReplicas": 3}}
#: Excluded from a Plan, and cordoned, by a user.
EXCLUDED, CORDONED = "node-0", "node-2"
EXCLUDING = "plan.upgrade.cattle.io/p"
CHART = {"metadata": {"name": "harvester", "namespace": "fleet-local"}, "spec": {"paused": True}}
INSTANCE = {"metadata": {"name": "db", "namespace": "default"}, "spec": {"evictionStrategy": "None"}}
STOPPED = {"spec": {"replicas": 0}}


def refused(message: str) -> tuple[Remedy, ...]:
    """Return the remedies for a write that is refused with this message."""
    details = {"causes": [{"message": message}]}
    refusals, error = Refusals(), Terminal(message, status=403, reason="Forbidden", details=details)
    error.written = WrittenObject(kind="Job", namespace="default", name="j")
    refusals.record("u", error, known_since=lambda *_: None, now=NOW - timedelta(minutes=1))
    return refusals.blockers("u", is_over=False, now=NOW)[0].remedies


def _pod(view: FakeView, **status: Any) -> tuple[Remedy, ...]:
    found = pod_blocker(view, {**POD, "spec": {"nodeName": NODE}, "status": status}, node="", since=NOW)
    assert found is not None
    return found.remedies


def _excluded() -> tuple[Remedy, ...]:
    view, wait = FakeView(), PlanWait(namespace="cattle-system", name="p", since=NOW)
    labels = {"kubernetes.io/hostname": EXCLUDED, EXCLUDING: "disabled"}
    view.found["Node"] = [{"metadata": {"name": EXCLUDED, "labels": labels}}]
    available = {"availableReplicas": 1}
    view.found["Deployment"] = [{"metadata": {"namespace": "cattle-system"}, "status": available}]
    (found,) = CONTROLLER_FINDERS[0].find(view, wait)
    return found.remedies


def _waiting(reason: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason}}
    return {"phase": "Pending", "containerStatuses": [{"name": "c", "image": "a/b:1", "state": state}]}


def remedies() -> dict[str, tuple[Remedy, ...]]:
    """Return the remedies by a name."""
    view = FakeView()
    labels = {"kubernetes.io/hostname": "other"}
    view.found["Node"] = [{"metadata": {"name": NODE, "labels": labels}, "spec": {"taints": [TAINT]}}]
    machine = {**INSTANCE, "metadata": {**INSTANCE["metadata"], "ownerReferences": [{"kind": "VirtualMachine"}]}}
    outage = deployments.outage_of(STOPPED, "default", "stopped")
    assert outage is not None
    return {
        "taint": tuple(untaint_steps(view, POD)),
        "image": _pod(view, **_waiting("ImagePullBackOff")),
        "containerd": _pod(view, **_waiting("CrashLoopBackOff")),
        "pending": _pod(view, phase="Pending"),
        "hostile-image": (pull(NODE, "a'; reboot; '"),),
        "budget": evictions.ways_out(BUDGET, is_stale=False),
        "ill-budget": evictions.ways_out(ILL_BUDGET, is_stale=False),
        "scaled-down": outage.ways_out,
        "hangs": deployments.hangs("kubectl logs -n default deploy/stopped", "default", "stopped", after="a minute"),
        "hostname": (hostname_remedy(view.found["Node"][0]),),
        "volume": (*volumes.ways_out(VOLUME, nodes=3), volumes.way_to_skip(VOLUME, NODE)),
        "replicas": volumes.ways_out(MANY_REPLICAS, nodes=2),
        "cordon": node_obstacles.cordon_refused("denied", [CORDONED]).ways_out,
        "excluded": _excluded(),
        "paused-chart": (vm_updates.way_out(CHART),),
        "vm": vm_obstacle(machine, []).ways_out,
        "instance": vm_obstacle(INSTANCE, []).ways_out,
        "hook": drain_hooks.foreign_ways_out(STRATEGY, [HOOK], drained="m-plan"),
        "leftover": (Remedy("Acknowledge it", command=drain_hooks.leftover_hook("m-plan")),),
        "drain-again": (drain_hooks.drain_again(4),),
        "webhook": refused(WEBHOOK),
        "permissions": (permissions("default"), *refused("denied")),
        "policy": refused("ValidatingAdmissionPolicy 'signed-images' denied request"),
        "reboot": node_obstacles.not_ready_ways_out(NODE),
        "label": missing_nodes.unlabelled(NODE).ways_out,
        "removal": removal_ways_out(JOBS, {"metadata": {"name": "j", "namespace": "default"}}),
    }


def blockers() -> list[Blocker]:
    """Return a blocker with each of them."""
    return [
        Blocker(
            reason=BlockerReason.POD_PENDING,
            kind="Pod",
            namespace="default",
            name=name,
            message=f"Pod default/{name}: it does not start",
            remedies=found,
            since=NOW,
        )
        for name, found in remedies().items()
    ]
