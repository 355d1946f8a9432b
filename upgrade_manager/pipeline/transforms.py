"""The transforms of the informers, which drop the fields that no decision reads.

A change of what a store keeps causes a reconcile (predicates.py), and a cluster has a thousand nodes. controller.py
passes the transforms to the informers; the finders of blockers read most objects whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.api.keys import (
    ANNOTATION_BOOT_ID,
    ANNOTATION_FORBIDDEN_STOPS,
    ANNOTATION_HOLDS,
    ANNOTATION_INVALID_POLICIES,
    ANNOTATION_MACHINE,
    ANNOTATION_PENDING_OS_IMAGE,
    ANNOTATION_PROGRESS,
    ANNOTATION_PROGRESS_TIME,
    LABEL_COMPONENT,
    Component,
)
from upgrade_manager.facts.machine_plan import annotations_read
from upgrade_manager.facts.taints import has_drain_taint
from upgrade_manager.facts.volumes import slim_engine, slim_volume
from upgrade_manager.kube.informer import without_managed_fields
from upgrade_manager.kube.resources import (
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    LONGHORN_ENGINES,
    LONGHORN_VOLUMES,
    MACHINES,
    NODES,
    PODS,
    PROVISIONING_CLUSTERS,
    SECRETS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: Fields of a Job's status about its Pods.
_POD_FIELDS = ("active", "succeeded", "uncountedTerminatedPods")
_JOB_ANNOTATIONS = frozenset(
    {
        ANNOTATION_BOOT_ID,
        ANNOTATION_FORBIDDEN_STOPS,
        ANNOTATION_HOLDS,
        ANNOTATION_INVALID_POLICIES,
        ANNOTATION_PROGRESS,
        ANNOTATION_PROGRESS_TIME,
    }
)
#: Annotations and other metadata of a Node that the transform keeps unchanged.
_NODE_ANNOTATIONS = frozenset({ANNOTATION_MACHINE, ANNOTATION_PENDING_OS_IMAGE})
_NODE_METADATA = ("name", "uid", "resourceVersion", "labels", "creationTimestamp", "deletionTimestamp")
#: Fields of a Node's status.nodeInfo that the transform keeps.
_NODE_INFO = ("osImage", "kubeletVersion", "bootID")
#: Metadata of a Machine that the transform keeps.
_MACHINE_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
)
#: Metadata of a Job, a machine-plan Secret or a Deployment that the transform drops.
_UNREAD_METADATA = frozenset({"managedFields", "annotations"})
#: Metadata of a Pod or an EndpointSlice that the transform keeps.
_OWNED_METADATA = (*_NODE_METADATA, "namespace", "ownerReferences")
#: Conditions of a Deployment that the transform keeps.
_DEPLOYMENT_CONDITIONS = frozenset({"Available", "ReplicaFailure"})


def _only(obj: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: obj[key] for key in keys if key in obj}


def without(obj: Mapping[str, Any], keys: Container[str]) -> dict[str, Any]:
    """Return a copy without these keys, for predicates.py, too."""
    return {key: value for key, value in obj.items() if key not in keys}


def slim_node(node: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields of a Node that no decision reads; the list of images would be most of the cache.

    Annotations of other programs change often, and each change would trigger a reconcile. The transform keeps the list
    of taints only if it has the taint of the pre-drain Job.
    """
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    taints = {"taints": spec["taints"]} if has_drain_taint(node) else {}
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k in _NODE_ANNOTATIONS}
    return {
        "metadata": {
            **_only(metadata, _NODE_METADATA),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "unschedulable": bool(spec.get("unschedulable")),
            **taints,
        },
        "status": {
            "conditions": [_without_heartbeat(c) for c in status.get("conditions") or [] if c.get("type") == "Ready"],
            "addresses": [one for one in status.get("addresses") or [] if one.get("type") == "InternalIP"][:1],
            "daemonEndpoints": {"kubeletEndpoint": (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}},
            "nodeInfo": {key: (status.get("nodeInfo") or {}).get(key, "") for key in _NODE_INFO},
        },
    }


def _without_heartbeat(condition: dict[str, Any]) -> dict[str, Any]:
    """Drop the time of the kubelet's last report, which changes every five minutes."""
    return without(condition, {"lastHeartbeatTime"})


def slim_cluster(cluster: dict[str, Any]) -> dict[str, Any]:
    """Drop the status of Rancher's cluster, which no decision reads and which changes often."""
    metadata = cluster["metadata"]
    managers = [one for one in metadata.get("managedFields") or () if one.get("subresource") != "status"]
    return {"metadata": {**metadata, "managedFields": managers}, "spec": cluster.get("spec") or {}}


def slim_job(job: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields of a Job that no decision reads; its Pod template would be most of the cache.

    Only the cluster upgrade's Job keeps its Pod counts, because each change of many nodes' Jobs would trigger a
    reconcile. Other Jobs keep the fact that a Pod runs, which changes once.
    """
    metadata, status = job["metadata"], job.get("status") or {}
    spec = job.get("spec") or {}
    found = {key: value for key, value in (metadata.get("annotations") or {}).items() if key in _JOB_ANNOTATIONS}
    annotations = {"annotations": found} if found else {}
    counts_pods = (metadata.get("labels") or {}).get(LABEL_COMPONENT) == Component.CLUSTER_UPGRADE
    kept = ("conditions", "failed", "startTime", *(_POD_FIELDS if counts_pods else ()))
    # The Job controller writes 0 as well, together with the start.
    ready = {"ready": status["ready"]} if status.get("ready") else {}
    limit = {"backoffLimit": spec["backoffLimit"]} if "backoffLimit" in spec else {}
    return {
        "metadata": {
            **without(metadata, _UNREAD_METADATA),
            **annotations,
        },
        "spec": {"parallelism": spec.get("parallelism", 1), "suspend": bool(spec.get("suspend")), **limit},
        "status": {**_only(status, kept), **ready},
    }


def slim_pod(pod: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields of a Pod that no decision reads: Pods of the survey alone are cached, for their reports.

    The start of a container, probes and addresses would trigger a reconcile each.
    """
    metadata, status = pod["metadata"], pod.get("status") or {}
    return {
        "metadata": _only(metadata, _OWNED_METADATA),
        "spec": {"nodeName": (pod.get("spec") or {}).get("nodeName") or ""},
        "status": {
            "phase": status.get("phase") or "",
            "containerStatuses": [_slim_container(one) for one in status.get("containerStatuses") or []],
        },
    }


def _slim_container(status: dict[str, Any]) -> dict[str, Any]:
    state = without(status.get("state") or {}, {"running"})
    return {"name": status.get("name", ""), "image": status.get("image", ""), "state": state}


def slim_machine(machine: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields of a Machine that no decision reads: Rancher reports each step of a node in a condition."""
    metadata, status = machine["metadata"], machine.get("status") or {}
    return {
        "metadata": _only(metadata, _MACHINE_METADATA),
        "status": {
            "phase": status.get("phase") or "",
            "nodeRef": {"name": (status.get("nodeRef") or {}).get("name") or ""},
            "conditions": [one for one in status.get("conditions") or () if one.get("type") == "PlanApplied"],
        },
    }


def slim_machine_plan(secret: dict[str, Any]) -> dict[str, Any]:
    """Drop the annotations of a machine-plan Secret that no decision reads, such as Rancher's results of probes."""
    return {"metadata": {**without(secret["metadata"], _UNREAD_METADATA), "annotations": annotations_read(secret)}}


def slim_endpoint_slice(endpoint_slice: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields of an EndpointSlice that no decision reads: all but which endpoints are ready."""
    metadata = endpoint_slice["metadata"]
    found = ((one.get("conditions") or {}).get("ready") for one in endpoint_slice.get("endpoints") or [])
    return {
        "metadata": _only(metadata, _OWNED_METADATA),
        "endpoints": [{"conditions": {} if ready is None else {"ready": ready}} for ready in found],
    }


def slim_deployment(deployment: dict[str, Any]) -> dict[str, Any]:
    """Drop the counts and conditions of a Deployment that change with each of its Pods, and that no decision reads."""
    status = deployment.get("status") or {}
    conditions = (one for one in status.get("conditions") or [] if one.get("type") in _DEPLOYMENT_CONDITIONS)
    return {
        "metadata": without(deployment["metadata"], _UNREAD_METADATA),
        "spec": deployment.get("spec") or {},
        "status": {
            **_only(status, ["availableReplicas"]),
            "conditions": [without(one, {"lastUpdateTime"}) for one in conditions],
        },
    }


_TRANSFORMS = {
    NODES: slim_node,
    JOBS: slim_job,
    PODS: slim_pod,
    MACHINES: slim_machine,
    SECRETS: slim_machine_plan,
    PROVISIONING_CLUSTERS: slim_cluster,
    ENDPOINT_SLICES: slim_endpoint_slice,
    DEPLOYMENTS: slim_deployment,
}
#: Transforms for finders, which read most objects whole; a cluster has ten thousand objects of these kinds.
_WHOLE_TRANSFORMS = {LONGHORN_ENGINES: slim_engine, LONGHORN_VOLUMES: slim_volume}


def transform_of(resource: Resource, *, is_whole: bool) -> Callable[[Object], Object]:
    """Return the transform of a kind, for decisions or, with `is_whole`, for finders."""
    return (_WHOLE_TRANSFORMS if is_whole else _TRANSFORMS).get(resource, without_managed_fields)
